/**
 * Blocks that recur, one after the other, found in the order of the slots: slots with the same labels and
 * the same places of operands, used together: each by the next one, or all by the same. One of them is
 * drawn, with how often it is there. Blocks that are used far apart (an input at each step of time) stay:
 * the one that is drawn could only stand near one of those that use it.
 */
import type { Slot } from "./aligned";

export interface Block {
  /** Index of its first slot, how many slots it has, and how often it follows itself. */
  start: number;
  length: number;
  times: number;
}

/** Blocks that save less than this many slots stay as they are. */
const LEAST_SAVED = 6;

export function recurring(slots: Slot[], label: (slot: Slot) => string): Block[] {
  const index = new Map(slots.map((slot, place) => [slot.key, place]));
  const labels = slots.map(label);
  const inputs = slots.map((slot) => slot.inputs.map((key) => index.get(key) ?? -1));
  const users: number[][] = slots.map(() => []);
  inputs.forEach((own, place) => {
    for (const input of own) users[input]?.push(place);
  });
  const blocks: Block[] = [];
  let place = 0;
  while (place < slots.length) {
    const block = best(place, labels, inputs);
    if (block === null || !isUsedTogether(block, users)) {
      place += 1;
    } else {
      blocks.push(block);
      place += block.length * block.times;
    }
  }
  return blocks;
}

function best(start: number, labels: string[], inputs: number[][]): Block | null {
  let found: Block | null = null;
  for (let length = 2; start + 2 * length <= labels.length; length += 1) {
    let end = start + length;
    while (end < labels.length && repeats(start, end, length, labels, inputs)) end += 1;
    const times = Math.floor((end - start) / length);
    const saved = (times - 1) * length;
    if (saved >= LEAST_SAVED && saved > (found === null ? 0 : (found.times - 1) * found.length)) {
      found = { start, length, times };
    }
  }
  return found;
}

/** Whether a slot is what stands one length before it: same label, operands as far away or the same. */
function repeats(
  start: number,
  at: number,
  length: number,
  labels: string[],
  inputs: number[][],
): boolean {
  const model = at - length;
  const mine = inputs[at] ?? [];
  const its = inputs[model] ?? [];
  if (labels[at] !== labels[model] || mine.length !== its.length) return false;
  return mine.every((input, n) => {
    const other = its[n] as number;
    const enters = other < start && input >= model - length; // the first block takes what is before all
    return input - other === length || (input === other && input < start) || enters;
  });
}

/** Whether all that uses a block from outside of them all, if anything does, is the same for each. */
function isUsedTogether({ start, length, times }: Block, users: number[][]): boolean {
  const outside = new Set<string>();
  for (let at = start; at < start + length * times; at += length) {
    const own = users.slice(at, at + length).flat();
    const others = own.filter((user) => user >= start + length * times);
    if (others.length > 0) outside.add([...new Set(others)].sort((a, b) => a - b).join());
  }
  return outside.size <= 1;
}

/** What is drawn of folded slots: the first of each block, and the blocks by the key of their slots. */
export function fold(
  slots: Slot[],
  blocks: Block[],
): { slots: Slot[]; frames: Map<string, Block> } {
  const stands = new Map<string, string>();
  const frames = new Map<string, Block>();
  const hidden = new Set<string>();
  for (const block of blocks) {
    for (let n = 0; n < block.length * block.times; n += 1) {
      const own = slots[block.start + n] as Slot;
      const shown = slots[block.start + (n % block.length)] as Slot;
      stands.set(own.key, shown.key);
      frames.set(shown.key, block);
      if (own !== shown) hidden.add(own.key);
    }
  }
  const order = new Map(slots.map((slot, place) => [slot.key, place]));
  const shown = slots
    .filter((slot) => !hidden.has(slot.key))
    .map((slot) => {
      const place = order.get(slot.key) ?? 0;
      const inputs = slot.inputs.map((key) => stands.get(key) ?? key);
      const earlier = inputs.filter((key) => (order.get(key) ?? 0) < place);
      return { ...slot, inputs: [...new Set(earlier)] };
    });
  return { slots: shown, frames };
}
