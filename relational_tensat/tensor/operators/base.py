"""An operator: one class says everything that the rest of the system needs of it.

Signature, shape rule, numeric meaning, flops and bytes, how it is measured, how random applications of
it are drawn (``sampling``), and the ONNX operators that it reads and writes (``onnx_form``). Adding an
operator is adding one class with ``@register``: the graph, the e-graph, the rules, the cost model, the
verifier and both file formats pick it up from here.

Attributes have one canonical form per meaning, since the e-graph tells e-nodes apart by them. ``normalize``
does the part that needs no operand (defaults, ``dilation=(1, 1)`` is ``()``), ``canonical`` does the rest
(negative axes count from the front). ``build_graph`` stores canonical attributes; ``infer`` refuses what is
left uncanonical.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.operators.attributes import Attr, normalized
from relational_tensat.tensor.operators.onnx_form import OnnxForm
from relational_tensat.tensor.operators.samples import Sampling
from relational_tensat.tensor.operators.traits import NO_ACTIVATION, Family
from relational_tensat.tensor.types import Attrs, AttrValue, TensorType, ValueType, tensors_of

#: What operators' methods take: the operands' types, their values.
Types: TypeAlias = tuple[ValueType, ...]
Values: TypeAlias = Sequence[Any]

#: The families of kernels that do not compute, by ``Operator.kernel``.
_IDLE = {"nothing": Family.NOTHING, "view": Family.VIEW, "copy": Family.COPY}


class Operator(OnnxForm, Sampling, ABC):
    """The description of one operator. Stateless: one instance serves all."""

    name: ClassVar[str]
    #: Fewest and most inputs; None for no upper limit.
    arity: ClassVar[tuple[int, int | None]] = (1, 1)
    attrs: ClassVar[tuple[Attr, ...]] = ()
    #: Whether the result is a tuple whose parts are separate values of a graph (split, opaque).
    multi_output: ClassVar[bool] = False
    #: Whether operands may have no elements (a dimension of size 0). Operators that compute take none: such
    #: tensors are known before inference, and no rule is verified for them.
    takes_empty: ClassVar[bool] = False
    #: The kind of kernel that runs it, one of ``KERNELS``.
    kernel: ClassVar[str] = "compute"
    #: The family of the kernel that computes, where one does.
    computes: ClassVar[Family] = Family.ELEMENT_WISE
    #: Whether a runtime that goes through an ONNX graph calls it although its kernel is "nothing".
    is_called: ClassVar[bool] = False
    #: Whether it only names or groups values, and is no operator to a reader (leaves, tuples, parts).
    is_structure: ClassVar[bool] = False
    #: Whether rules may use it.
    in_rules: ClassVar[bool] = True
    #: Whether operands may be tuples of tensors.
    takes_tuples: ClassVar[bool] = False
    #: Whether, without operands, its value is known before inference (weights, fills).
    is_constant: ClassVar[bool] = False
    #: Whether it computes in the declared element types, rounding included, even when evaluated.
    rounds: ClassVar[bool] = False
    #: Whether its result, when evaluated, may be a view of an operand or of one number: it then takes no
    #: memory of its own.
    may_be_view: ClassVar[bool] = False

    #: Whether it rounds no float: all elements of the result are elements of the operands, bounds, or
    #: conversions of these.
    is_exact: ClassVar[bool] = False
    #: Whether a result may be as large, or as small, as an operand is, however large or small that is.
    keeps_size: ClassVar[bool] = False
    #: Whether a result is a sum of many terms, each of which may be larger than it.
    sums: ClassVar[bool] = False
    #: Whether it tells NaN from numbers. That a law holds for numbers, on which it is tried, proves nothing
    #: then.
    tells_nan: ClassVar[bool] = False
    #: Operands of which only the square root counts.
    rooted_operands: ClassVar[tuple[int, ...]] = ()

    @property
    def family(self) -> Family:
        """Its kernel's family."""
        return _IDLE.get(self.kernel, self.computes)

    @cached_property
    def declared(self) -> Mapping[str, Attr]:
        """Its attributes by name, in order."""
        return {attr.name: attr for attr in self.attrs}

    @property
    def free(self) -> bool:
        """Whether it never launches a kernel on any device: nothing runs, or it is a view."""
        return self.kernel in ("nothing", "view")

    @abstractmethod
    def infer(self, inputs: Types, attrs: Attrs) -> ValueType:
        """Return the type of the result.

        Raises:
            ShapeError: the operands do not fit; says what was given and what was expected.
        """

    @abstractmethod
    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        """Compute the result in float64 (integers stay integers); a tuple for a tuple type.

        This is the meaning of the operator: slow, simple, exact.
        """

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """Return the number of arithmetic operations; one per output element unless overridden."""
        return sum(part.size for part in tensors_of(output))

    def summed_dtype(self, inputs: Types, output: ValueType) -> str:
        """Return the element type that it computes in: the result's unless overridden."""
        parts = tensors_of(output)
        return parts[0].dtype if parts else ""

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """Return the operators that it does, by name, with how many elements each works through.

        It does itself, and an activation where it has one.
        """
        result = sum(part.size for part in tensors_of(output))
        first = sum(part.size for part in tensors_of(inputs[0])) if inputs else 0
        own = [(self.name, max(first, result))]
        act = attrs.get("act", NO_ACTIVATION)
        return own if act == NO_ACTIVATION else [*own, (str(act), result)]

    def bytes_moved(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """Return the bytes read and written; every operand and result once unless overridden."""
        parts = [part for value in (*inputs, output) for part in tensors_of(value)]
        return sum(part.nbytes for part in parts)

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """Return which operands are parameters of a network wherever it is run, by their numbers.

        A device measures an operator with these known before inference, as kernels may arrange them
        once. None unless overridden.
        """
        return ()

    def prepared_operands(self, inputs: Types) -> tuple[int, ...]:
        """Return which of ``weight_operands`` kernels arrange once, before inference, where they can.

        Where such an operand is computed at inference, its kernel is another, slower one. None unless
        overridden.
        """
        return ()

    def evaluate_typed(self, inputs: Values, types: Types, attrs: Attrs) -> Any:
        """As ``evaluate``, for operators whose meaning needs the operands' declared types."""
        return self.evaluate(inputs, attrs)

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        """Compute the result with residues modulo a prime in place of floats.

        Integers and booleans stay what they are; operators of nothing else are never asked. Enough
        as it stands for operators whose ``evaluate`` only moves, adds, subtracts and, once,
        multiplies elements; others say here what they are over a field.

        Raises:
            Undefined: a quotient by 0.
        """
        return field.reduced(self.evaluate_typed(inputs, types, attrs))

    def skipping_nan(self, operand: Any) -> Any:
        """Return an operand as a runtime takes it that does not see NaN; itself unless overridden.

        Extrema of several elements override it: a runtime may spread a NaN or pass over it, and onnxruntime
        decides by its place in memory.
        """
        return operand

    def is_random(self, attrs: Attrs) -> bool:
        """Whether results differ from run to run (random numbers, state)."""
        return False

    def unpacks(self, attrs: Attrs) -> bool:
        """Whether it makes integers that were stored to be small large again, where they are used.

        Constants stay as they are stored: the result is never computed before inference.
        """
        return False

    def is_left_to_readers(self, attrs: Attrs) -> bool:
        """Whether it unpacks constants: without a target, nothing runs for it, as their readers do so."""
        return False

    def is_foldable(self, attrs: Attrs) -> bool:
        """Whether the result is known before inference once the operands are."""
        return not (self.is_random(attrs) or self.unpacks(attrs))

    def can_evaluate(self, inputs: Types, attrs: Attrs) -> bool:
        """Whether ``evaluate_typed`` has all it needs on this machine, and always gives the same."""
        return True

    def is_defined(self, inputs: Values) -> bool:
        """Whether ``evaluate`` has a value for these operands; floats always have (infinities, NaN)."""
        return True

    def normalize(self, attrs: Attrs) -> dict[str, AttrValue]:
        """Return the attributes complete with defaults, in declared order.

        Raises:
            ShapeError: one is unknown, missing, or of the wrong kind.
        """
        return normalized(self.name, self.declared, attrs)

    def canonical(self, inputs: Types, attrs: Attrs) -> dict[str, AttrValue]:
        """Return the normalized attributes in the form that is unique for these operands.

        Raises:
            ShapeError: as ``normalize``, or an axis that the operands do not have.
        """
        return self.normalize(attrs)

    def check(self, inputs: Types, attrs: Attrs) -> ValueType:
        """Check arity and attributes, then infer the result's type.

        Raises:
            ShapeError: as ``infer`` and ``normalize``.
        """
        self.check_operands(inputs)
        return self.infer(inputs, self.normalize(attrs))

    def check_operands(self, inputs: Types) -> None:
        """Refuse a number of operands that the operator does not take, and operands without elements.

        Raises:
            ShapeError: too few or too many, or one has a dimension of size 0.
        """
        self.check_arity(len(inputs))
        if self.takes_empty:
            return
        for index, kind in enumerate(inputs):
            if any(part.size == 0 for part in tensors_of(kind)):
                raise ShapeError(f"{self.name}: operand {index} is {kind}, which has no elements")

    def check_arity(self, count: int) -> None:
        """Refuse a number of operands that the operator does not take.

        Raises:
            ShapeError: too few or too many.
        """
        low, high = self.arity
        if count < low or (high is not None and count > high):
            arity = f"{low} or more" if high is None else f"{low} to {high}"
            arity = str(low) if low == high else arity
            raise ShapeError(f"{self.name} takes {arity} inputs, not {count}")


def tensor(value: ValueType, label: str) -> TensorType:
    """Return ``value`` as a tensor type.

    Raises:
        ShapeError: it is a tuple.
    """
    if isinstance(value, TensorType):
        return value
    raise ShapeError(f"{label} is a tuple of {len(value)} tensors, expected one tensor")
