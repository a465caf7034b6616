"""What the data checks raise."""


class CheckFailed(Exception):
    """Data that is not good: the message names what was expected, how many rows failed it and the first of them."""


class SuiteError(Exception):
    """A suite that cannot be trusted to fail, such as one that would pass on empty data."""
