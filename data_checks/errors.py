"""What the data checks raise."""


class CheckFailed(Exception):
    """A suite did not hold; the message names the expectation, how many rows failed it and the first of them."""


class SuiteError(Exception):
    """A suite that cannot be trusted to fail, such as one that would pass on empty data."""
