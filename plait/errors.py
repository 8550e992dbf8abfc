"""The one exception that carries a message for the user."""


class PlaitError(Exception):
    """A mistake in what the user gave plait: one line that says where, what was expected, what
    was found and what to do. Command-line tools print it without a traceback."""
