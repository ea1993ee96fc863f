"""Claims: the right to work on a run, which ends when another process takes the run over.

A process that slept past its lease does not know that it did. What keeps it from
writing and sending is not its own clock but a number on record: it grows each time the
work changes hands (a fencing token, as in Kleppmann's "How to do distributed locking").
"""

from dataclasses import dataclass

#: The claim number of the process that receives a message.
FIRST_CLAIM = 1


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim under which a run is worked on: the run's key, and the number that the claim has.

    ``place`` is the chat that the run speaks in (:attr:`agent.domain.types.ChatAddress.place`), ""
    for
    a run without one. A claim holds as long as the row of the run has the same number and place.
    """

    run_pk: int
    number: int = 0
    place: str = ""
