"""The one error that the results database and the report raise on purpose."""


class StoreError(Exception):
    """The results cannot be read or written; the message says what, which value, and what to do."""
