"""TASO's ``graph_subst.pb``: rules as two lists of operators in protocol buffers.

The messages, with their field numbers: RuleCollection {rule 1}; Rule {srcOp 1, dstOp 2,
mappedOutput 3}; Operator {type 1, input 2, para 3}; Tensor {opId 1, tsId 2}; Parameter {key 1,
value 2}; MapOutput {srcOpId 1, dstOpId 2, srcTsId 3, dstTsId 4}. A tensor with a negative opId is
the rule's input of that number; otherwise it is output tsId of an operator earlier in the list.

Kernel sizes of convolutions are those that TASO generated the rule with; neither TASO nor TENSAT
asks for them when it rewrites, and they are not imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from bench.taso.file_rules import (
    BY_NAME,
    BY_NUMBER,
    MOST_OPERATORS,
    PARAM_KEYS,
    FileOperator,
    FileRule,
    Input,
    Node,
    Tree,
    concat_name,
    node,
)
from relational_tensat.base.errors import RuleError

_VARINT, _BYTES = 0, 2
_TYPES = {1: "64-bit number", 3: "group", 4: "end of a group", 5: "32-bit number"}
_LONGEST_VARINT_BYTES = 10


@dataclass(frozen=True, slots=True)
class Message:
    """A part of a file, to be read as a message.

    Attributes:
        data: the whole file; the message is ``data[start:end]``.
        where: how errors name the place: the file, and what is read there.
    """

    data: bytes
    start: int
    end: int
    where: str

    def within(self, label: str) -> Message:
        """Return the message; errors in it name this place too."""
        return Message(self.data, self.start, self.end, f"{self.where}: {label}")

    def fail(self, offset: int, reason: str) -> NoReturn:
        """Raise the error for a place in the message.

        Raises:
            RuleError: always.
        """
        raise RuleError(f"{self.where}: byte {offset}: {reason}")

    def fields(self) -> Iterator[tuple[int, int | Message]]:
        """Yield number and value of each field.

        Raises:
            RuleError: the bytes are no message.
        """
        at = self.start
        while at < self.end:
            begin = at
            key, at = self._varint(at)
            number, kind = key >> 3, key & 7
            if kind == _VARINT:
                value, at = self._varint(at)
                yield number, value - (1 << 64) if value >> 63 else value
            elif kind == _BYTES:
                length, at = self._varint(at)
                if at + length > self.end:
                    self.fail(begin, f"{length} bytes announced, but only {self.end - at} follow")
                yield number, Message(self.data, at, at + length, self.where)
                at += length
            else:
                type_text = _TYPES.get(kind, f"field of type {kind}")
                self.fail(begin, f"a {type_text}, expected an integer or a message")

    def split(
        self, integers: dict[int, str], messages: dict[int, str]
    ) -> tuple[dict[str, int], dict[str, list[Message]]]:
        """Return the fields by name: each integer exactly once, each message any number of times.

        Raises:
            RuleError: a field is unknown, of the other kind, missing or doubled.
        """
        values: dict[str, int] = {}
        parts: dict[str, list[Message]] = {name: [] for name in messages.values()}
        for number, value in self.fields():
            if isinstance(value, Message) and number in messages:
                parts[messages[number]].append(value)
            elif isinstance(value, int) and number in integers:
                if integers[number] in values:
                    self.fail(self.start, f"{integers[number]} is given twice")
                values[integers[number]] = value
            else:
                kind = "message" if isinstance(value, Message) else "integer"
                choices = ", ".join(f"{n} ({name})" for n, name in (integers | messages).items())
                self.fail(self.start, f"field {number} holds a {kind}, expected fields {choices}")
        for name in integers.values():
            if name not in values:
                self.fail(self.start, f"{name} is missing")
        return values, parts

    def _varint(self, at: int) -> tuple[int, int]:
        """Return an integer and the offset after it."""
        value = place = 0
        while True:
            if at + place >= self.end:
                self.fail(at, "it ends within a number")
            if place == _LONGEST_VARINT_BYTES:
                self.fail(at, f"a number of more than {_LONGEST_VARINT_BYTES} bytes")
            byte = self.data[at + place]
            value |= (byte & 127) << 7 * place
            place += 1
            if byte < 128:
                return value & (1 << 64) - 1, at + place


#: The outputs of each operator of a list so far.
_Outputs: TypeAlias = list[tuple[Tree, ...]]

_TENSOR_FIELDS = {1: "operator", 2: "output"}
_MAP_FIELDS = {1: "source", 2: "target", 3: "source output", 4: "target output"}


def read_protobuf(data: bytes, file: str) -> list[FileRule]:
    """Return the rules of TASO's protocol buffers.

    Args:
        file: how messages and rules name the file.

    Raises:
        RuleError: the bytes are damaged, or are something else; names the rule and the byte.
    """
    message = Message(data, 0, len(data), file)
    rules: list[FileRule] = []
    for number, value in message.fields():
        if number != 1 or not isinstance(value, Message):
            message.fail(0, f"field {number} of the file, expected only field 1, a rule")
        rules.append(_rule(value.within(f"rule {len(rules)}"), file, len(rules)))
    return rules


def _rule(message: Message, file: str, number: int) -> FileRule:
    _, parts = message.split({}, {1: "source", 2: "target", 3: "output"})
    source, target = (_operators(parts[side]) for side in ("source", "target"))
    if not parts["output"]:
        message.fail(message.start, "has no outputs, expected one or more")
    sources: list[Node] = []
    targets: list[Tree] = []
    for part in parts["output"]:
        fields, _ = part.split(_MAP_FIELDS, {})
        output_tree = _tensor(part, source, fields["source"], fields["source output"])
        if isinstance(output_tree, Input):
            part.fail(part.start, "the source of an output is an input, expected an operator")
        sources.append(output_tree)
        targets.append(_tensor(part, target, fields["target"], fields["target output"]))
    return FileRule(file, number, 0, tuple(sources), tuple(targets))


def _operators(messages: list[Message]) -> _Outputs:
    outputs: _Outputs = []
    sizes: list[int] = []  # how many operators stand in each one's term, shared ones repeated
    for message in messages:
        fields, parts = message.split({1: "type"}, {2: "input", 3: "parameter"})
        operands = tuple(_operand(part, outputs) for part in parts["input"])
        values = dict(_parameter(part) for part in parts["parameter"])
        operator = _operator(message, fields["type"], len(operands))
        for name in operator.params:
            if PARAM_KEYS[name] not in values:
                message.fail(message.start, f"{operator.name} without its parameter {name}")
        params = {name: values[PARAM_KEYS[name]] for name in operator.params}
        result = node(operator, operands, params)
        sizes.append(1 + sum(sizes[number] for number in _used(parts["input"])))
        if sizes[-1] > MOST_OPERATORS:
            message.fail(message.start, f"a term of more than {MOST_OPERATORS} operators")
        halves = tuple(Node(half, (result,)) for half in ("split_0", "split_1"))
        outputs.append(halves if operator.name == "split" else (result,))
    return outputs


def _used(messages: list[Message]) -> Iterator[int]:
    """Yield the numbers of the operators that operands come from."""
    for message in messages:
        fields, _ = message.split(_TENSOR_FIELDS, {})
        if fields["operator"] >= 0:
            yield fields["operator"]


def _operator(message: Message, number: int, arity: int) -> FileOperator:
    operator = BY_NUMBER.get(number)
    if operator is None:
        choices = ", ".join(
            f"{candidate.number} ({candidate.name})" for candidate in BY_NUMBER.values()
        )
        message.fail(message.start, f"unknown operator type {number}, expected one of {choices}")
    if operator.name == "concat":
        operator = BY_NAME.get(concat_name(arity), operator)
    if arity != operator.arity:
        message.fail(
            message.start, f"{operator.name} of {arity} tensors, expected {operator.arity}"
        )
    return operator


def _operand(message: Message, outputs: _Outputs) -> Tree:
    fields, _ = message.split(_TENSOR_FIELDS, {})
    return _tensor(message, outputs, fields["operator"], fields["output"])


def _parameter(message: Message) -> tuple[int, int]:
    fields, _ = message.split({1: "key", 2: "value"}, {})
    return fields["key"], fields["value"]


def _tensor(message: Message, outputs: _Outputs, operator: int, output: int) -> Tree:
    """Return an input of the rule, or an output of an operator that is already there."""
    if operator < 0:
        return Input(str(-operator))
    if operator >= len(outputs):
        message.fail(
            message.start,
            f"operator {operator} out of range, expected one of the {len(outputs)} before it",
        )
    if not 0 <= output < len(outputs[operator]):
        message.fail(
            message.start,
            f"output {output} of operator {operator} out of range, expected one of its"
            f" {len(outputs[operator])}",
        )
    return outputs[operator][output]
