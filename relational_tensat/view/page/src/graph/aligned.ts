/**
 * Two graphs in the same places: a slot holds a value of the one, of the other, or of both.
 *
 * Values of the same id are one slot, and so are two of the same e-class that nothing else is a slot with:
 * they are equal, whatever computes them. A slot is equal if the same e-node computes it on both sides.
 */
import type { Visible } from "./visible";

export type State = "equal" | "changed" | "gone" | "new";

export interface Slot {
  key: string;
  before: Visible | null;
  after: Visible | null;
  state: State;
  /** Keys of the slots that the values on either side are computed from. */
  inputs: string[];
}

export function align(before: Visible[], after: Visible[]): Slot[] {
  const left = new Map(before.map((item) => [item.value.id, item]));
  const right = new Map(after.map((item) => [item.value.id, item]));
  const partner = partners(left, right);
  const keyOfRight = (id: string): string => partner.get(id) ?? id;
  const slots = new Map<string, Slot>();
  for (const item of before) {
    slots.set(item.value.id, slot(item.value.id, item, null, item.inputs));
  }
  for (const item of after) {
    const key = keyOfRight(item.value.id);
    const inputs = item.inputs.map(keyOfRight);
    const known = slots.get(key)?.before ?? null;
    const all = [...new Set([...(known?.inputs ?? []), ...inputs])];
    slots.set(key, slot(key, known, item, all));
  }
  return ordered(slots);
}

function slot(key: string, before: Visible | null, after: Visible | null, inputs: string[]): Slot {
  return { key, before, after, state: stateOf(before, after), inputs };
}

function stateOf(before: Visible | null, after: Visible | null): State {
  if (before === null) return "new";
  if (after === null) return "gone";
  return before.value.enode === after.value.enode ? "equal" : "changed";
}

/** Values of the second graph, by id, whose class has a value in the first one only under another id. */
function partners(left: Map<string, Visible>, right: Map<string, Visible>): Map<string, string> {
  const free = new Map<number, string>();
  for (const [id, item] of left) if (!right.has(id)) free.set(item.value.eclass, id);
  const found = new Map<string, string>();
  for (const [id, item] of right) {
    const other = left.has(id) ? undefined : free.get(item.value.eclass);
    if (other !== undefined) {
      found.set(id, other);
      free.delete(item.value.eclass);
    }
  }
  return found;
}

/** Slots with what they are computed from before them, each as late as it is needed. */
function ordered(slots: Map<string, Slot>): Slot[] {
  const result: Slot[] = [];
  const state = new Map<string, "open" | "done">();
  const used = new Set([...slots.values()].flatMap((item) => item.inputs));
  const roots = [...slots.keys()].filter((key) => !used.has(key));
  const stack = [...[...slots.keys()].reverse(), ...roots.reverse()]; // what has a user only if in a cycle
  while (stack.length > 0) {
    const key = stack[stack.length - 1] as string;
    const item = slots.get(key);
    if (item === undefined || state.get(key) === "done") {
      stack.pop();
    } else if (state.get(key) === "open") {
      stack.pop();
      state.set(key, "done");
      result.push(item);
    } else {
      state.set(key, "open");
      for (const input of [...item.inputs].reverse()) if (!state.has(input)) stack.push(input);
    }
  }
  return result;
}
