# Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
# see LICENSE. SPDX-License-Identifier: Apache-2.0
"""What SuCL's calls raise: a class for each kind of error, each with fact, cause and cure."""


class Error(Exception):
    """The base of all errors of SuCL. ``str()`` has all parts in one line.

    Attributes:
        code: its number, as in ``sucl::errc``
        fact: what is wrong, and why
        cure: what to do about it
        operation: as in ``"allreduce #17"``; empty outside an operation
        backend: empty if none was involved
        native_code: the code of the library below; 0 if there is none
        rank: the rank that raised it; -1 before ranks are known
    """

    code = 15
    fact = ""
    cure = ""
    operation = ""
    backend = ""
    native_code = 0
    rank = -1

    @classmethod
    def of(cls, fact, cure):
        """An error of these parts."""
        made = cls(f"{fact}. {cure}")
        made.fact, made.cure = fact, cure
        return made


class InvalidArgumentError(Error, ValueError):
    """An argument makes no sense."""
    code = 1


class InvalidRankError(Error, ValueError):
    """A root or peer is outside the communicator."""
    code = 2


class InvalidCountError(Error, ValueError):
    """A count or size does not fit the array that it refers to."""
    code = 3


class InvalidTypeError(Error, TypeError):
    """The element type is unknown, the op is not defined for it, or arrays differ in it."""
    code = 4


class InvalidMemoryError(Error, ValueError):
    """Memory that is not contiguous, read-only, gone, overlapping or of another context."""
    code = 5


class MismatchError(Error):
    """Ranks have called different operations, or with different arguments."""
    code = 6


class ConfigurationError(Error):
    """A configuration file, environment variable or argument is wrong."""
    code = 7


class UnavailableError(Error):
    """A backend or library is missing, or of the wrong version."""
    code = 8


class UnsupportedError(Error):
    """No backend at hand can execute the operation."""
    code = 9


class NativeError(Error):
    """The library below has reported an error."""
    code = 10


class LateError(Error, TimeoutError):
    """The watchdog gave up on an operation."""
    code = 11


class PeerLostError(Error, ConnectionError):
    """A process of the communicator died."""
    code = 12


class ShutDownError(Error):
    """Used after the runtime was shut down."""
    code = 13


class OutOfMemoryError(Error, MemoryError):
    """There is no memory for what was asked for."""
    code = 14


class InternalError(Error):
    """A mistake in SuCL."""
    code = 15


_CLASSES = {c.code: c for c in (
    InvalidArgumentError, InvalidRankError, InvalidCountError, InvalidTypeError,
    InvalidMemoryError, MismatchError, ConfigurationError, UnavailableError, UnsupportedError,
    NativeError, LateError, PeerLostError, ShutDownError, OutOfMemoryError, InternalError)}


def checked(function, *given):
    """``function(*given)`` of the extension, where arguments of wrong types are an error as others
    are."""
    try:
        return function(*given)
    except TypeError as wrong:
        if "incompatible function arguments" not in str(wrong):
            raise
        values = ", ".join(repr(one) for one in given if isinstance(
            one, (int, float, complex, str, bytes, list, tuple, dict, type(None))))
        raise InvalidArgumentError.of(
            f"among the arguments {values} is one of a wrong type, or a number out of range",
            "help() of the function or class says what it takes") from None


def _made(code, _name, text, fact, cure, operation, backend, native_code, rank):
    error = _CLASSES.get(code, Error)(text)
    error.fact, error.cure, error.operation = fact, cure, operation
    error.backend, error.native_code, error.rank = backend, native_code, rank
    return error
