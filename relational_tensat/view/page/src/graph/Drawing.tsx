/** One side of a comparison as an SVG; what is pointed at is named by the slot's key. */
import { memo } from "preact/compat";
import type { OperatorForm as Form } from "../data";
import { time } from "../format";
import type { Slot } from "./aligned";
import { type Comparison, type Side, title } from "./comparison";
import type { Place } from "./layout";
import { costOf, form, type Visible } from "./visible";

export type Colour = "change" | "cost";

interface Props {
  comparison: Comparison;
  side: Side;
  forms: Form[];
  source: number;
  colour: Colour;
  highestUs: number;
  zoom: number;
  label: string;
}

const MARKS = { equal: "", changed: "≠", gone: "−", new: "+" };

export const Drawing = memo(function Drawing(props: Props) {
  const { comparison, side, zoom } = props;
  const { layout } = comparison;
  const here = new Map(comparison.slots.map((slot) => [slot.key, slot]));
  return (
    <svg
      class="drawing"
      role="img"
      aria-label={props.label}
      width={layout.width * zoom}
      height={layout.height * zoom}
      viewBox={`0 0 ${layout.width} ${layout.height}`}
    >
      {comparison.folded.map(({ block, keys }) => (
        <Fold
          key={keys[0]}
          places={keys.flatMap((key) => layout.places.get(key) ?? [])}
          times={block.times}
        />
      ))}
      {layout.edges.map((edge) => {
        const from = here.get(edge.from)?.[side];
        const to = here.get(edge.to)?.[side];
        const drawn = from && to && isInput(here.get(edge.to), side, from, comparison);
        return drawn ? <path key={`${edge.from} ${edge.to}`} class="edge" d={edge.path} /> : null;
      })}
      {comparison.slots.map((slot) => {
        const item = slot[side];
        const place = layout.places.get(slot.key);
        return item && place ? (
          <Node key={slot.key} {...props} slot={slot} item={item} place={place} />
        ) : null;
      })}
    </svg>
  );
});

/** Whether a value takes another on this side; of folded blocks all that is drawn is there. */
function isInput(
  slot: Slot | undefined,
  side: Side,
  from: Visible,
  comparison: Comparison,
): boolean {
  if (slot === undefined) return false;
  if (comparison.folded.length > 0 && slot.state === "equal") return true;
  return (slot[side]?.inputs ?? []).includes(from.value.id);
}

function Node(props: Props & { slot: Slot; item: Visible; place: Place }) {
  const { slot, item, place, forms, colour } = props;
  const cost = costOf(item.value, forms, props.source);
  const share = props.highestUs > 0 ? cost / props.highestUs : 0;
  const { op } = form(item.value, forms);
  const kind = op === "input" || op === "weight" ? "leaf" : op === "part" ? "part" : "operator";
  const heat = colour === "cost" ? { "--heat": `${Math.round(100 * Math.sqrt(share))}%` } : {};
  const { width, height } = place;
  return (
    <g
      class={`node ${kind} ${slot.state} by-${colour}${item.value.is_constant ? " constant" : ""}`}
      data-key={slot.key}
      transform={`translate(${place.x - width / 2},${place.y - height / 2})`}
      style={heat}
    >
      <rect width={width} height={height} rx={kind === "operator" ? 5 : height / 2} />
      <text x={width / 2} y={height / 2 + 4}>
        {title(item, forms)}
      </text>
      {slot.state === "equal" ? null : (
        <text class="mark" x={8} y={12}>
          {MARKS[slot.state]}
        </text>
      )}
      {share > 0.005 ? (
        <rect class="cost" x={4} y={height - 5} width={(width - 8) * share} height={3} />
      ) : null}
      <title>{`${title(item, forms)}, ${time(cost)}`}</title>
    </g>
  );
}

function Fold({ places, times }: { places: Place[]; times: number }) {
  const left = Math.min(...places.map((place) => place.x - place.width / 2)) - 7;
  const top = Math.min(...places.map((place) => place.y - place.height / 2)) - 7;
  const right = Math.max(...places.map((place) => place.x + place.width / 2)) + 7;
  const bottom = Math.max(...places.map((place) => place.y + place.height / 2)) + 7;
  return (
    <g class="fold">
      <rect x={left} y={top} width={right - left} height={bottom - top} rx={10} />
      <text x={right} y={top - 5}>{`× ${times}`}</text>
    </g>
  );
}
