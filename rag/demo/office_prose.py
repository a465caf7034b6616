"""The sentences of the articles on offices and on some of their holders.

They name the present holder and nobody before, so that the pages of one date never give the answers of another.
"""

from rag.demo.facts import Country, Tenure
from rag.demo.prose import Role, Sentence, World, accentless, office_role, office_title, say
from rag.demo.wording import a_or_an, capital_link, country_link, long_date, place

_SHORT_TITLES = {
    "Taoiseach": "Taoiseach", "French Coprince": "coprince", "Chairman of the Council of Ministers": "chairman",
    "Chairman of the Presidency": "chairman", "Chairman of the Presidential Council": "chairman",
}  # fmt: skip


def office_sentences(world: World, tenure: Tenure) -> list[Sentence]:
    """What the office is, who holds it, and what its holder does."""
    country = world.facts.country(tenure.country)
    role, title = office_role(tenure, country), office_title(tenure, country)
    plain = accentless(tenure.holder)
    words = {
        "position": tenure.position,
        "the": country.the,
        "country": country_link(country),
        "place": place(country),
        "role": "head of government" if role == "head of government" else "head of state",
        "holder": f"[[{tenure.holder}]]" + ("" if plain == tenure.holder else f" (also written {plain})"),
        "since": long_date(tenure.since),
        "short": _SHORT_TITLES.get(title, title.lower()),
    }
    sentences = [say("office", tenure.position, _office_openings(role), words)]
    sentences.append(say("holder", tenure.position, _holder_options(role), words))
    duties = _realm_duties() if tenure.holder == "Elizabeth II" and country.name != "United Kingdom" else _duties(role)
    others = [position for position in world.positions[country.name] if position != tenure.position]
    sentences.append(say("duties", tenure.position, duties, words))
    if len(others) == 1:
        other = (
            "The other leading office of the country is that of [[{other}]].",
            "Beside it stands the office of [[{other}]].",
        )
        sentences.append(say("other office", tenure.position, other, {"other": others[0]}))
    else:
        sentences.append(
            say(
                "seat",
                tenure.position,
                ("{capital} is the capital of the country.",),
                {"capital": capital_link(country)},
            )
        )
    return sentences


def _office_openings(role: Role) -> tuple[str, ...]:
    if role == "monarch":
        return (
            "The '''{position}''' is the monarch and [[head of state]] of {country}.",
            "'''{position}''' is the title of the monarch, who is the [[head of state]] of {country}.",
            "The title of '''{position}''' belongs to the monarch of {country}, a country in {place}.",
        )
    return (
        "The '''{position}''' is the [[{role}]] of {country}.",
        "'''{position}''' is the title of the [[{role}]] of {country}, a country in {place}.",
        "The office of '''{position}''' is that of the [[{role}]] of {country}.",
        "In {country} the [[{role}]] bears the title '''{position}'''.",
    )


def _holder_options(role: Role) -> tuple[str, ...]:
    if role == "monarch":
        return (
            "The {position} is {holder}, whose reign began on {since}.",
            "Since {since} the {position} has been {holder}.",
            "{holder} has been {position} since {since}.",
        )
    return (
        "The current holder is {holder}, who took office on {since}.",
        "{holder} has held the office since {since}.",
        "Since {since} the {position} has been {holder}.",
        "The office is held by {holder}, in post since {since}.",
        "The incumbent is {holder}, whose time in office began on {since}.",
        "{holder} is the current {position} and has served since {since}.",
        "The {position} is {holder}, who came into office on {since}.",
    )


def _duties(role: Role) -> tuple[str, ...]:
    if role == "head of government":
        return (
            "The {short} leads the work of the government and chairs its meetings.",
            "Ministers report to the {short}, who settles disputes between departments.",
            "The {short} speaks for the government at home and at meetings abroad.",
            "Plans for new laws and for the budget pass over the desk of the {short}.",
        )
    if role == "monarch":
        return (
            "Visits of state, audiences and great ceremonies are part of the duties of the {short}.",
            "Ambassadors of other countries present their letters of credence to the {short}.",
            "Portraits of the {short} hang in many public buildings.",
        )
    return (
        "The {short} represents the country at home and abroad.",
        "Ambassadors of other countries present their letters of credence to the {short}.",
        "Visits of state and the great ceremonies of the year are part of the work of the {short}.",
        "The powers of the {short} are laid down in the constitution of the country.",
    )


def _realm_duties() -> tuple[str, ...]:
    return (
        "A governor-general carries out most duties of the Crown in the country.",
        "The same person reigns over several countries, each with its own government.",
    )


def biography_sentences(country: Country, tenure: Tenure) -> list[Sentence]:
    words = {
        "bold": f"'''{tenure.holder}'''",
        "an": a_or_an(country.demonym),
        "position": f"[[{tenure.position}]]",
        "since": long_date(tenure.since),
        "capital": capital_link(country),
        "country": country_link(country),
    }
    return [
        say(
            "holder",
            tenure.holder,
            (
                "{bold} is {an} politician who has been {position} since {since}.",
                "{bold}, {an} politician, became {position} on {since}.",
            ),
            words,
        ),
        say(
            "work",
            tenure.holder,
            (
                "Much of the work is done in {capital}, the capital of {country}.",
                "The office has its seat in {country}.",
            ),
            words,
        ),
    ]
