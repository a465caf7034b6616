"""The arguments of a template call."""

from dataclasses import dataclass, field

# More than any real call has; "{{x|}}" with a million pipes is nobody's prose.
_MAX_ARGUMENTS = 500


@dataclass(frozen=True)
class Arguments:
    """What stands between the braces after the template's name, already rendered to text."""

    positional: list[str] = field(default_factory=list)
    named: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, index: int) -> str:
        """The positional argument at ``index`` (from 0) without outer spaces; "" where it is not given."""
        return self.positional[index].strip() if index < len(self.positional) else ""

    def get(self, *names: str) -> str:
        """The first of the named arguments that is given and not empty, else ""."""
        return next((self.named[name] for name in names if self.named.get(name)), "")

    def given(self) -> list[str]:
        """The positional arguments that are not empty, without outer spaces."""
        return [stripped for argument in self.positional if (stripped := argument.strip())]


def parse_arguments(content: str) -> Arguments:
    """The arguments in ``content``, what stands between the braces; "1=x" is a positional argument too.

    >>> parse_arguments("lang|fr|1=de|2=Guten Tag|script=Latn")
    Arguments(positional=['de', 'Guten Tag'], named={'script': 'Latn'})
    """
    _, _, rest = content.partition("|")
    positional: dict[int, str] = {}
    named: dict[str, str] = {}
    unnumbered = 0
    for part in rest.split("|", _MAX_ARGUMENTS)[:_MAX_ARGUMENTS] if rest or "|" in content else []:
        key, equals, value = part.partition("=")
        key = key.strip()
        if not equals:
            unnumbered += 1
            positional[unnumbered] = part
        elif key.isascii() and key.isdigit() and 0 < len(key) <= 3:
            positional[int(key)] = value.strip()
        else:
            named[key] = value.strip()
    size = max(positional, default=0)
    return Arguments([positional.get(index, "") for index in range(1, size + 1)], named)
