/** Graphs written as lines: `id = operator operand operand`, the e-class being the id's number. */
import type { OperatorForm as Form, GraphFrame as Frame } from "../src/data";

export const forms: Form[] = [];

export function frame(text: string): Frame {
  const values = text
    .trim()
    .split("\n")
    .map((line) => {
      const [id = "", , op = "", ...inputs] = line.trim().split(/\s+/);
      const form = formOf(op);
      const eclass = Number.parseInt(id, 10);
      const enode = 1000 * form + eclass;
      const is_constant = op === "weight";
      return { id, eclass, enode, form, inputs, names: [], is_constant };
    });
  return { values, outputs: values.slice(-1).map((value) => value.id) };
}

function formOf(op: string): number {
  const known = forms.findIndex((form) => form.op === op);
  if (known >= 0) return known;
  const is_structure = op === "input" || op === "weight";
  forms.push({ op, attrs: {}, type: "float32[2]", operands: [], costs_us: [1], is_structure });
  return forms.length - 1;
}
