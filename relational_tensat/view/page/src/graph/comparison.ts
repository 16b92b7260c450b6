/** Two graphs made ready to be drawn: aligned, folded where blocks recur, and laid out. */
import type { OperatorForm as Form, GraphFrame as Frame } from "../data";
import { short } from "../format";
import { align, type Slot } from "./aligned";
import { type Block, fold, recurring } from "./folding";
import { type Box, type Layout, layOut } from "./layout";
import { form, type Visible, visible } from "./visible";

export interface Comparison {
  slots: Slot[];
  layout: Layout;
  /** How many values are not drawn, since there are too many. */
  left: number;
  /** Blocks that are drawn once, with what is drawn of each. */
  folded: { block: Block; keys: string[] }[];
}

export type Side = "before" | "after";

export interface Choices {
  constants: boolean;
  folds: boolean;
  /** Only slots so few edges away from what differs; 0: all. */
  radius: number;
}

/** More values take too long to lay out; they stand in the order of the computation. */
const MOST_DRAWN = 2_000;
const HEIGHT = 34;
const CHARACTER = 7.2;
const MOST_CHARACTERS = 22;

export function compare(before: Frame, after: Frame, forms: Form[], choices: Choices): Comparison {
  let slots = align(
    visible(before, forms, choices.constants),
    visible(after, forms, choices.constants),
  );
  if (choices.radius > 0) slots = near(slots, choices.radius);
  let frames = new Map<string, Block>();
  if (choices.folds) {
    const blocks = recurring(slots, (slot) => label(slot, forms));
    ({ slots, frames } = fold(slots, blocks));
  }
  const left = Math.max(0, slots.length - MOST_DRAWN);
  slots = slots.slice(0, MOST_DRAWN);
  const boxes = slots.map((slot) => box(slot, forms));
  const edges = slots.flatMap((slot) => slot.inputs.map((from) => ({ from, to: slot.key })));
  const keys = new Map<Block, string[]>();
  for (const [key, block] of frames) keys.set(block, [...(keys.get(block) ?? []), key]);
  const folded = [...keys].map(([block, members]) => ({ block, keys: members }));
  return { slots, left, layout: layOut(boxes, edges), folded };
}

/** The name of an operator as a box shows it. */
export function title(item: Visible, forms: Form[]): string {
  const { op, attrs } = form(item.value, forms);
  if (op === "input" || op === "weight")
    return short(item.value.names[0] ?? String(attrs.name ?? op), 20);
  if (op === "part") return `part ${attrs.index ?? ""}`;
  const act = attrs.act !== undefined && attrs.act !== "none" ? `+${attrs.act}` : "";
  return short(op === "opaque" ? String(attrs.op_type ?? op) : op + act, MOST_CHARACTERS);
}

/** The slots with an operator or a value of such a name on one of the sides, in the order of the computation. */
export function named(slots: Slot[], sides: Side[], forms: Form[], words: string): Slot[] {
  const wanted = plain(words);
  if (wanted === "") return [];
  const fits = (item: Visible | null) =>
    item !== null &&
    [title(item, forms), form(item.value, forms).op, ...item.value.names].some((name) =>
      plain(name).includes(wanted),
    );
  return slots.filter((slot) => sides.some((side) => fits(slot[side])));
}

/** A name as it is compared: ReduceMean is reduce_mean. */
function plain(name: string): string {
  return name.toLowerCase().replace(/[\s_]/g, "");
}

function box(slot: Slot, forms: Form[]): Box {
  const texts = [slot.before, slot.after].flatMap((item) =>
    item === null ? [] : [title(item, forms)],
  );
  const longest = Math.max(...texts.map((text) => text.length));
  return { key: slot.key, width: Math.max(58, longest * CHARACTER + 30), height: HEIGHT };
}

function label(slot: Slot, forms: Form[]): string {
  const part = (item: Visible | null) => {
    if (item === null) return "";
    const { op, attrs, type } = form(item.value, forms);
    const named = op === "input" || op === "weight";
    return named ? `${op} ${type}` : `${op} ${JSON.stringify(attrs)} ${type}`;
  };
  return `${slot.state}|${part(slot.before)}|${part(slot.after)}`;
}

/** What differs, what it is computed from, and what is computed from it, so many edges away. */
function near(slots: Slot[], radius: number): Slot[] {
  const inputs = new Map(slots.map((slot) => [slot.key, slot.inputs]));
  const users = new Map<string, string[]>(slots.map((slot) => [slot.key, []]));
  for (const slot of slots) for (const input of slot.inputs) users.get(input)?.push(slot.key);
  const start = slots.filter((slot) => slot.state !== "equal").map((slot) => slot.key);
  const kept = new Set(start);
  for (const next of [inputs, users]) {
    let ring = start;
    for (let step = 0; step < radius; step += 1) {
      ring = ring.flatMap((key) => next.get(key) ?? []);
      for (const key of ring) kept.add(key);
    }
  }
  return slots
    .filter((slot) => kept.has(slot.key))
    .map((slot) => ({ ...slot, inputs: slot.inputs.filter((key) => kept.has(key)) }));
}
