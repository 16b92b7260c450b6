/** Two graphs side by side, with what is pointed at beside them. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { GraphFrame as Frame, PageData } from "../data";
import type { Slot } from "./aligned";
import { type Choices, compare, type Comparison, named, type Side } from "./comparison";
import { Details } from "./Details";
import { type Colour, Drawing } from "./Drawing";
import { costOf } from "./visible";

interface Props {
  before: Frame;
  after: Frame;
  beforeLabel: string;
  afterLabel: string;
  data: PageData;
  choices: Choices;
  colour: Colour;
  source: number;
  sides: Side[];
  zoom: number | "fit";
  /** Names of operators or values that are marked. */
  words?: string;
}

/** Below this size, wide graphs stand one above the other instead of side by side. */
const LEGIBLE = 0.6;
/** What would have to be smaller than this to fit is scrolled. */
const SMALLEST = 0.45;

export function Compared(props: Props) {
  const { before, after, choices, source, sides, data } = props;
  const { forms } = data;
  const { constants, folds, radius } = choices;
  const comparison = useMemo(
    () => compare(before, after, forms, { constants, folds, radius }),
    [before, after, forms, constants, folds, radius],
  );
  const highestUs = useMemo(
    () => Math.max(...[...before.values, ...after.values].map((v) => costOf(v, forms, source)), 0),
    [before, after, forms, source],
  );
  const slots = useMemo(() => new Map(comparison.slots.map((s) => [s.key, s])), [comparison]);
  const [pointed, setPointed] = useState<Slot | null>(null);
  const [pinned, setPinned] = useState<Slot | null>(null);
  const panels = useRef<HTMLDivElement>(null);
  const width = useWidth(panels);
  useEffect(() => setPinned(null), [comparison]);
  const words = props.words ?? "";
  const found = useMemo(
    () => named(comparison.slots, sides, forms, words),
    [comparison, sides.join(), forms, words],
  );
  const one = useMemo(() => [pinned ?? pointed].filter((slot) => slot !== null), [pinned, pointed]);
  useMarked(panels, one, "marked");
  useMarked(panels, found, "found");
  const { width: drawn, height } = comparison.layout;
  const beside = (width / sides.length - 14) / Math.max(drawn, 1);
  const isStacked = sides.length > 1 && beside < LEGIBLE && drawn > height;
  const fit = Math.min(
    1.15,
    Math.max(SMALLEST, isStacked ? (width - 14) / Math.max(drawn, 1) : beside),
  );
  const zoom = props.zoom === "fit" ? fit : props.zoom;
  useStart(panels, comparison, zoom, width);
  const labels = { before: props.beforeLabel, after: props.afterLabel };
  const find = (event: Event): Slot | null => {
    const key = (event.target as Element).closest<SVGGElement>(".node")?.dataset.key;
    return key === undefined ? null : (slots.get(key) ?? null);
  };
  useEffect(() => {
    if (found[0] !== undefined) scrollTo(panels.current, found[0]);
  }, [found]);
  const show = (slot: Slot) => {
    setPinned(slot);
    scrollTo(panels.current, slot);
  };
  return (
    <div class="compared">
      {words === "" ? null : <Found found={found} at={pinned} onShow={show} />}
      {comparison.left > 0 ? (
        <p class="note">
          The first {comparison.slots.length} values are drawn, in the order of the computation;{" "}
          {comparison.left} more are not.
        </p>
      ) : null}
      <div
        class={isStacked ? "panels stacked" : "panels"}
        ref={panels}
        tabIndex={0}
        role="group"
        aria-label="operators: ↑ and ↓ go from one to the next, Escape lets go"
        onKeyDown={(event) => {
          const next = stepTo(comparison.slots, pinned, event.key, sides);
          if (next === undefined) return;
          event.preventDefault();
          setPinned(next);
          if (next !== null) scrollTo(panels.current, next);
        }}
        onPointerOver={(event) => setPointed(find(event))}
        onPointerLeave={() => setPointed(null)}
        onClick={(event) => setPinned(find(event))}
        onScrollCapture={(event) => scrollAlike(panels.current, event.target as Element)}
      >
        {sides.map((side) => (
          <section class={`panel ${side}`} key={side}>
            <h3>{labels[side]}</h3>
            <Drawing
              comparison={comparison}
              side={side}
              forms={forms}
              source={source}
              colour={props.colour}
              highestUs={highestUs}
              zoom={zoom}
              label={labels[side]}
            />
          </section>
        ))}
      </div>
      <Details slot={pinned ?? pointed} data={data} isPinned={pinned !== null} />
    </div>
  );
}

/** How many there are of what was sought, and the way from one to the next. */
function Found({
  found,
  at,
  onShow,
}: {
  found: Slot[];
  at: Slot | null;
  onShow: (slot: Slot) => void;
}) {
  const place = at === null ? -1 : found.indexOf(at);
  const go = (way: number) => {
    const from = place < 0 && way < 0 ? 0 : place;
    const next = found[(from + way + found.length) % found.length];
    if (next !== undefined) onShow(next);
  };
  return (
    <p class="found-count" role="status">
      {found.length === 0 ? "no operator or value of that name is drawn" : null}
      {found.length > 0 ? (
        <>
          {place < 0 ? `${found.length} found` : `${place + 1} of ${found.length}`}{" "}
          <button type="button" aria-label="previous" onClick={() => go(-1)}>
            ↑
          </button>
          <button type="button" aria-label="next" onClick={() => go(1)}>
            ↓
          </button>
        </>
      ) : null}
    </p>
  );
}

/** Scroll to where the first change is, whenever other graphs are drawn. */
function useStart(
  panels: { current: HTMLElement | null },
  { slots, layout }: Comparison,
  zoom: number,
  width: number,
): void {
  useEffect(() => {
    const changed = slots.filter((slot) => slot.state !== "equal");
    const places = changed.flatMap((slot) => layout.places.get(slot.key) ?? []);
    const top = places.sort((a, b) => a.y - b.y)[0];
    if (top === undefined || width === 0) return;
    for (const panel of panels.current?.children ?? []) {
      panel.scrollTop = Math.max(0, top.y * zoom - 160);
      panel.scrollLeft = Math.max(0, top.x * zoom - panel.clientWidth / 2);
    }
  }, [layout, width > 0]);
}

/** The slot that a key leads to, in the order of the computation; undefined where it leads nowhere. */
function stepTo(
  slots: Slot[],
  from: Slot | null,
  key: string,
  sides: Side[],
): Slot | null | undefined {
  if (key === "Escape") return null;
  const way = { ArrowDown: 1, ArrowUp: -1 }[key];
  if (way === undefined) return undefined;
  const drawn = slots.filter((slot) => sides.some((side) => slot[side] !== null));
  const place = from === null ? (way > 0 ? -1 : drawn.length) : drawn.indexOf(from);
  return drawn[Math.min(Math.max(place + way, 0), drawn.length - 1)];
}

function scrollTo(panels: HTMLElement | null, slot: Slot): void {
  const box = panels?.querySelector(`[data-key="${CSS.escape(slot.key)}"]`);
  box?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

/** The width of an element, whenever it changes. */
function useWidth(element: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const target = element.current;
    if (target === null) return undefined;
    setWidth(target.clientWidth);
    const observer = new ResizeObserver(() => setWidth(target.clientWidth));
    observer.observe(target);
    return () => observer.disconnect();
  }, [element]);
  return width;
}

/** Mark the boxes of slots in all drawings, without drawing them again. */
function useMarked(element: { current: HTMLElement | null }, slots: Slot[], mark: string): void {
  useEffect(() => {
    const boxes = slots.flatMap((slot) => [
      ...(element.current?.querySelectorAll(`[data-key="${CSS.escape(slot.key)}"]`) ?? []),
    ]);
    for (const box of boxes) box.classList.add(mark);
    return () => {
      for (const box of boxes) box.classList.remove(mark);
    };
  }, [element, slots, mark]);
}

/** Scroll all panels to where one of them is. */
function scrollAlike(panels: HTMLElement | null, scrolled: Element): void {
  for (const panel of panels?.children ?? []) {
    if (panel.scrollLeft !== scrolled.scrollLeft) panel.scrollLeft = scrolled.scrollLeft;
    if (panel.scrollTop !== scrolled.scrollTop) panel.scrollTop = scrolled.scrollTop;
  }
}
