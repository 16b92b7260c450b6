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
from typing import TypeAlias

from relational_tensat.rules.taso.operators import (
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
from relational_tensat.rules.taso.wire import Message

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
