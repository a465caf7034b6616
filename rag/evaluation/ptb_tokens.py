"""English tokens in the manner of the Penn Treebank, as Q-BLEU counts them, without Java.

The official script runs Stanford's PTBTokenizer 3.4.1 in lower case and drops punctuation marks. Only what is left
counts, so the rules below are about what stays in one piece: numbers, abbreviations with their full stops,
hyphenated words, and the clitics that are cut off. Brackets stay as -lrb- and the like: the official list of marks
to drop is in upper case. Abbreviations outside the list lose their full stop.
"""

import regex

_ABBREVIATIONS = """
    adm apr assn assoc aug ave ariz ark bldg blvd bros brig cal calif capt cir cmdr co col colo conn corp cos cpl
    cpt ct dec del dept det dist dr drs est etc eq esp ed eds exec feb fig figs fla fri ft ga gen gov hon hosp inc
    ind indep ill intl jan jr jul jun kan ky la lt ltd maj mar mass md messrs mme mfg mgr mich min minn miss mo
    mont mon mr mrs ms msgr mt mts natl neb nev no nos nov oct okla ont op ore pa penn ph pp prof pres pt pte pty
    pvt rd rep reps res rev rt sat sen sens sep sept sgt sq sr ss st ste sun supt tenn tex thu thurs tue tues univ
    va vol vols vs vt wash wed wis wisc wyo
""".split()  # noqa: SIM905
_CLITIC = r"['’](?:s|m|d|re|ve|ll)(?![\p{L}\p{N}])"
_NOT = r"n['’]t(?![\p{L}\p{N}])"
_LETTERS = r"[\p{L}\p{M}\p{N}]"
_TOKEN = regex.compile(
    rf"""
    </?[a-z!][^<>]*>                                                    # a mark-up tag
    | (?:https?|ftp)://[^\s<>"']+ | www\.[^\s<>"']+ | [\w.+-]+@[\w-]+(?:\.[\w-]+)+
    | can(?=not\b) | gon(?=na\b) | got(?=ta\b) | lem(?=me\b) | gim(?=me\b) | wan(?=na\b) | '[td](?=(?:is|was|ye)\b)
    | {_NOT} | {_CLITIC}
    | (?:\p{{L}}\.){{2,}}(?:\p{{L}}(?!{_LETTERS}))? | \p{{L}}\.\p{{L}}(?!{_LETTERS})
    | (?<!{_LETTERS})\p{{L}}\.(?=[\s),;'"]|$)
    | (?:{"|".join(_ABBREVIATIONS)})\.(?!{_LETTERS})
    | ph\.d\. | (?<!{_LETTERS})'(?:em|n|til|cause|round|bout)\b | (?<!{_LETTERS})ol'(?!{_LETTERS}) | y'(?=all\b)
    | (?<!{_LETTERS})'\d{{2}}s?(?!\d)
    | [$£€¥¢#%*+=<>\\@^|~/]
    | (?:[-+]?\.?\d+(?:[.,:/]\d+)*|{_LETTERS})                         # a number or a word
      (?:(?!{_NOT}|{_CLITIC})(?:['’&/_-]|\.(?=\p{{L}}\p{{L}}))?{_LETTERS})*?
      (?={_NOT}|{_CLITIC}|(?!['’&/_-]?{_LETTERS}|\.\p{{L}}\p{{L}}))
    | _+ | [!?]{{2,}} | \.{{3}} | \S
    """,
    regex.VERBOSE,
)
_BRACKETS = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}
_DROPPED = frozenset("'' ' `` ` . ? ! , : - -- ... ; \" ‘ ’ “ ” – — … ´".split())  # noqa: SIM905


def ptb_tokens(text: str) -> list[str]:
    """The lower-case tokens of the text without punctuation marks.

    >>> ptb_tokens("Isn't Dr. Who's well-known T.A.R.D.I.S. blue (inside)?")
    ['is', "n't", 'dr.', 'who', "'s", 'well-known', 't.a.r.d.i.s.', 'blue', '-lrb-', 'inside', '-rrb-']
    """
    tokens: list[str] = _TOKEN.findall(text.lower())
    kept = (_BRACKETS.get(token, token) for token in tokens if token not in _DROPPED)
    return " ".join(kept).replace("’", "'").split()
