"""What came of a call: votes, results, and the exception for each code."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

from ._base import text
from ._enums import Code, VoteKind
from ._redlock import ffi, lib

if TYPE_CHECKING:
    from ._base import CData


@dataclass(frozen=True)
class Vote:
    """What one node said."""

    node: str
    kind: VoteKind
    error: str
    latency_us: Optional[int]
    holder: str
    holder_ttl_ms: Optional[int]
    holder_text: str


class Result:
    """What came of a request. `votes` has what each node said; str() gives a sentence."""

    def __init__(self, handle: CData) -> None:
        self._handle = ffi.gc(handle, lib.redlock_result_free)

    @property
    def code(self) -> Code:
        return Code(lib.redlock_result_code(self._handle))

    @property
    def resource(self) -> str:
        return text(lib.redlock_result_resource(self._handle))

    @property
    def attempts(self) -> int:
        return int(lib.redlock_result_attempts(self._handle))

    @property
    def passed_over(self) -> int:
        return int(lib.redlock_result_passed_over(self._handle))

    @property
    def waiters(self) -> Optional[int]:
        """inspect(): how many wait; None if it is not known."""
        count = lib.redlock_result_waiters(self._handle)
        return None if count < 0 else int(count)

    @property
    def waited_ms(self) -> Optional[int]:
        """inspect(): how long the first of them has waited; None if nobody waits or it is not known."""
        waited = lib.redlock_result_waited_ms(self._handle)
        return None if waited < 0 else int(waited)

    @property
    def votes(self) -> list[Vote]:
        return [self._vote(index) for index in range(lib.redlock_result_vote_count(self._handle))]

    def _vote(self, index: int) -> Vote:
        vote = ffi.new("redlock_vote *")
        vote.size = ffi.sizeof("redlock_vote")
        lib.redlock_result_vote(self._handle, index, vote)
        return Vote(text(vote.node), VoteKind(vote.kind), text(vote.error),
                    None if vote.latency_us < 0 else vote.latency_us, text(vote.holder),
                    None if vote.holder_ttl_ms < 0 else vote.holder_ttl_ms, text(vote.holder_text))

    def __str__(self) -> str:
        size = lib.redlock_result_message(self._handle, ffi.NULL, 0) + 1
        buffer = ffi.new("char[]", size)
        lib.redlock_result_message(self._handle, buffer, size)
        return text(buffer)

    def __repr__(self) -> str:
        return f"<Result {self.code.name}: {self}>"


def result_of(handle: CData) -> Optional[Result]:
    """Takes over a result of C, or NULL."""
    return None if handle == ffi.NULL else Result(handle)


def copy_of(handle: CData) -> Optional[Result]:
    """Copies a result that is valid only now."""
    return None if handle == ffi.NULL else result_of(lib.redlock_result_copy(handle))


class Error(Exception):
    """Why a call failed. `code` says what, `result` what the nodes said, str() what to do."""

    code: Code
    result: Optional[Result]

    def __init__(self, code: Code, result: Optional[Result] = None, sentence: str = "") -> None:
        super().__init__(sentence or (str(result) if result else text(lib.redlock_strerror(code))))
        self.code = code
        self.result = result


class ContendedError(Error):
    """Held by others."""


class NoQuorumError(Error):
    """Too few nodes answered."""


class TooSlowError(Error):
    """No validity is left of the ttl."""


class LostError(Error):
    """The lease expired or was taken."""


class CancelledError(Error):
    """The acquire was cancelled."""


class ClosedError(Error):
    """The client or the manager is closed."""


class InvalidError(Error, ValueError):
    """Invalid argument."""


class NoMemoryError(Error, MemoryError):
    """Out of memory."""


class BusyError(Error):
    """Another operation is under way."""


class ForkedError(Error):
    """Created before a fork: the child process needs a client of its own."""


class RandomError(Error):
    """The kernel gave no random bytes."""


class SystemCallError(Error):
    """A system call failed."""


class NotOwnerError(Error):
    """The owner does not hold the reentrant lease."""


class LimitError(Error):
    """A bound of the library is reached."""


class UpgradeError(Error):
    """The owner reads the lock: it must release it before it asks to have it alone."""


_ERRORS: dict[str, type[Error]] = {
    "CONTENDED": ContendedError, "NO_QUORUM": NoQuorumError, "TOO_SLOW": TooSlowError, "LOST": LostError,
    "CANCELLED": CancelledError, "CLOSED": ClosedError, "INVALID": InvalidError, "NO_MEMORY": NoMemoryError,
    "BUSY": BusyError, "FORKED": ForkedError, "RANDOM": RandomError, "SYSTEM": SystemCallError,
    "NOT_OWNER": NotOwnerError, "LIMIT": LimitError, "UPGRADE": UpgradeError,
}


def error_of(code: int, result: Optional[Result] = None, sentence: str = "") -> Error:
    """The exception for a code."""
    return _ERRORS.get(text(lib.redlock_error_name(code)), Error)(Code(code), result, sentence)


def check(code: int, result: Optional[Result] = None, sentence: str = "") -> None:
    """Raises the exception for a code other than OK."""
    if code != lib.REDLOCK_OK:
        raise error_of(code, result, sentence)
