/** What is known of a value that is pointed at, and of its counterpart in the other graph. */
import type { FilmStep, OperatorForm as Form, PageData } from "../data";
import { stepThatPut, stepThatRemoved } from "../film";
import { shape, short, time } from "../format";
import type { Slot } from "./aligned";
import { form, type Visible } from "./visible";

const MEANINGS = {
  equal: "The same operator on equal operands in both graphs.",
  changed: "Both graphs have this value; another operator computes it.",
  gone: "Only the first graph has it.",
  new: "Only the second graph has it.",
};

interface Props {
  slot: Slot | null;
  data: PageData;
  isPinned: boolean;
}

export function Details({ slot, data, isPinned }: Props) {
  const { forms } = data;
  const sources = data.summary.cost_sources;
  if (slot === null) {
    return (
      <aside class="details empty" aria-live="polite">
        <p>
          Point at an operator to see its shape, attributes, cost and counterpart. Click to keep it
          here.
        </p>
      </aside>
    );
  }
  const { before, after } = slot;
  const item = after ?? before;
  return (
    <aside class="details" aria-live="polite">
      <p class={`state ${slot.state}`}>{MEANINGS[slot.state]}</p>
      {slot.state === "equal" && after ? (
        <One item={after} forms={forms} sources={sources} title="in both graphs" />
      ) : (
        <>
          {before ? <One item={before} forms={forms} sources={sources} title="before" /> : null}
          {after ? <One item={after} forms={forms} sources={sources} title="after" /> : null}
        </>
      )}
      <Why slot={slot} data={data} />
      {item ? (
        <p>
          <a href={`#class=${item.value.eclass}`}>
            what else is equal to it (e-class {item.value.eclass})
          </a>
        </p>
      ) : null}
      {isPinned ? <p class="hint">Click elsewhere to let go.</p> : null}
    </aside>
  );
}

/** Which steps of the film took the one value away, and which put the other. */
function Why({ slot, data }: { slot: Slot; data: PageData }) {
  if (slot.state === "equal") return null;
  const { film } = data;
  if (film === null) {
    return (
      <p class="hint">
        {data.no_film ? (
          <>No steps tell how it became so; the ways to compute its e-class, below, are by rules.</>
        ) : (
          <a href="#steps">The steps tell how it became so.</a>
        )}
      </p>
    );
  }
  const removed = slot.before ? stepThatRemoved(film, slot.before.value) : undefined;
  const put = slot.after ? stepThatPut(film, slot.after.value.enode) : undefined;
  return (
    <>
      {removed ? <StepLink verb="replaced in" step={removed} /> : null}
      {put && put !== removed ? <StepLink verb="put in" step={put} /> : null}
    </>
  );
}

function StepLink({ verb, step }: { verb: string; step: FilmStep }) {
  return (
    <p>
      {verb} <a href={`#step=${step.number}`}>step {step.number}</a>, {step.rule}: {step.law}
    </p>
  );
}

function One({
  item,
  forms,
  sources,
  title,
}: {
  item: Visible;
  forms: Form[];
  sources: string[];
  title: string;
}) {
  const { op, attrs, type, operands, costs_us } = form(item.value, forms);
  const { names, is_constant } = item.value;
  return (
    <dl>
      <dt class="title">{title}</dt>
      <dd class="title">{op}</dd>
      {names.length > 0 ? (
        <>
          <dt>{names.length > 1 ? "names" : "name"}</dt>
          <dd class="names">
            {names
              .slice(0, 6)
              .map((name) => short(name, 80))
              .join(", ")}
          </dd>
        </>
      ) : null}
      <dt>shape</dt>
      <dd>{shape(type)}</dd>
      {operands.length > 0 ? (
        <>
          <dt>operands</dt>
          <dd>{operands.map(shape).join(", ")}</dd>
        </>
      ) : null}
      {sources.map((source, n) => (
        <Cost
          key={source}
          source={source}
          us={is_constant ? 0 : costs_us[n]}
          isConstant={is_constant}
        />
      ))}
      {Object.entries(attrs).map(([name, value]) => (
        <Attribute key={name} name={name} value={String(value)} />
      ))}
    </dl>
  );
}

function Cost({
  source,
  us,
  isConstant,
}: {
  source: string;
  us: number | null | undefined;
  isConstant: boolean;
}) {
  return (
    <>
      <dt>cost</dt>
      <dd>{isConstant ? "none: known before inference" : `${time(us)}, ${source}`}</dd>
    </>
  );
}

function Attribute({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{short(value, 120)}</dd>
    </>
  );
}
