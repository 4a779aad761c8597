"""Functions as recorded tools: each keeps its kind, its signature and what it returns."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from diagnosis_client._blocks import Core, ToolCall
from diagnosis_client._guard import guarded

F = TypeVar("F", bound=Callable[..., Any])

NewCall = Callable[[tuple[Any, ...], dict[str, Any]], ToolCall]


def recorded_tool(core: Core, function: F, tool_name: str | None) -> F:
    """`function`, with each call of it recorded."""
    name = tool_name or str(getattr(function, "__name__", type(function).__name__))
    signature = _signature(function)

    def new_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> ToolCall:
        return ToolCall(core, name, _arguments(signature, args, kwargs))

    if inspect.isasyncgenfunction(function):
        recorded = _async_generator(function, new_call, core.limit)
    elif inspect.isgeneratorfunction(function):
        recorded = _generator(function, new_call, core.limit)
    elif inspect.iscoroutinefunction(function):
        recorded = _coroutine(function, new_call)
    else:
        recorded = _plain(function, new_call)
    return cast("F", recorded)


def _plain(function: Callable[..., Any], new_call: NewCall) -> Callable[..., Any]:
    @functools.wraps(function)
    def record(*args: Any, **kwargs: Any) -> Any:
        with new_call(args, kwargs) as call:
            value = function(*args, **kwargs)
            call.result(value)
            return value

    return record


def _coroutine(function: Callable[..., Any], new_call: NewCall) -> Callable[..., Any]:
    @functools.wraps(function)
    async def record(*args: Any, **kwargs: Any) -> Any:
        with new_call(args, kwargs) as call:
            value = await function(*args, **kwargs)
            call.result(value)
            return value

    return record


def _generator(function: Callable[..., Any], new_call: NewCall, limit: int) -> Callable[..., Any]:
    """As PEP 380 delegates, with the session's scope on only while the tool itself runs."""

    @functools.wraps(function)
    def record(*args: Any, **kwargs: Any) -> Any:
        source = function(*args, **kwargs)
        resume = functools.partial(next, source)
        call, produced = new_call(args, kwargs), _Produced(limit)
        failure: BaseException | None = None
        call.open()
        try:
            while True:
                with call.active():
                    item = resume()
                produced.add(item)
                try:
                    resume = functools.partial(source.send, (yield item))
                except GeneratorExit:
                    source.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - the tool's to handle
                    resume = functools.partial(source.throw, error)
        except StopIteration as stop:
            return stop.value
        except BaseException as error:
            failure = error
            raise
        finally:
            call.result(produced.value)
            call.end(failure)

    return record


def _async_generator(function: Callable[..., Any], new_call: NewCall, limit: int) -> Callable[..., Any]:
    """The same for `async for`."""

    @functools.wraps(function)
    async def record(*args: Any, **kwargs: Any) -> Any:
        source = function(*args, **kwargs)
        resume = source.__anext__
        call, produced = new_call(args, kwargs), _Produced(limit)
        failure: BaseException | None = None
        call.open()
        try:
            while True:
                with call.active():
                    item = await resume()
                produced.add(item)
                try:
                    resume = functools.partial(source.asend, (yield item))
                except GeneratorExit:
                    await source.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001 - the tool's to handle
                    resume = functools.partial(source.athrow, error)
        except StopAsyncIteration:
            return
        except BaseException as error:
            failure = error
            raise
        finally:
            call.result(produced.value)
            call.end(failure)

    return record


class _Produced:
    """What a generator gave, as far as it will be kept."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._items: list[Any] = []

    def add(self, item: Any) -> None:
        if self._left > 0:
            self._items.append(item)
            self._left -= len(item) if isinstance(item, str) else 50

    @property
    def value(self) -> Any:
        """One text where all items are text, else the items."""
        if self._items and all(isinstance(item, str) for item in self._items):
            return "".join(self._items)
        return self._items


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have none
        return None


@guarded
def _arguments(signature: inspect.Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name; `self` is no argument of a tool."""
    if signature is None:
        return {"args": args, **kwargs}
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError:  # a wrong call, which the tool itself will refuse
        return {"args": args, **kwargs}
    names = list(signature.parameters)
    if names and names[0] in {"self", "cls"}:
        bound.pop(names[0], None)
    for key, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD and key in bound:
            bound.update(bound.pop(key))
    return dict(bound)
