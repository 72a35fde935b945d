"""Messages, and those who exchange them: what the author of a method builds on."""

from fedstruct.federation.codec import Limits
from fedstruct.federation.federation import Federation
from fedstruct.federation.message import EVERYTHING, Done, Message, Source, array
from fedstruct.federation.party import Party, answers
from fedstruct.federation.watch import Watch

__all__ = ["EVERYTHING", "Done", "Federation", "Limits", "Message", "Party", "Source", "Watch", "answers", "array"]
