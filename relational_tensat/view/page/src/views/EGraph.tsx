/** The e-graph: a class, what is equal in it and why, and its neighbourhood. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { EClass, ENode, OperatorForm as Form, Hit, PageData } from "../data";
import { stepsOfClass } from "../film";
import { count, plural, shape, short, time } from "../format";
import { useLoaded } from "../loading";
import type { Source } from "../source";
import { Neighbourhood } from "./Neighbourhood";

interface Props {
  data: PageData;
  source: Source;
  eclass: number;
}

export function EGraph({ data, source, eclass }: Props) {
  const [words, setWords] = useState("");
  const [asked, setAsked] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => {
      setAsked(words.trim());
    }, 150);
    return () => {
      clearTimeout(timer);
    };
  }, [words]);
  const hits = useLoaded(() => (asked ? source.find(asked) : first(data, source)), [asked, source]);
  const shown = eclass || (data.result.values.at(-1)?.eclass ?? 0);
  return (
    <article>
      <Extent data={data} source={source} />
      <div class="two wide-right">
        <section class="finder">
          <label>
            find a class
            <input
              type="search"
              value={words}
              placeholder="operator, tensor, shape or rule"
              onInput={(event) => {
                setWords(event.currentTarget.value);
              }}
            />
          </label>
          <p class="hint">{asked ? "Each word must occur." : "What the result computes:"}</p>
          {hits === null ? <p>…</p> : "error" in hits ? <p>{hits.error}</p> : null}
          {hits !== null && "value" in hits ? <Hits hits={hits.value} eclass={shown} /> : null}
        </section>
        <One data={data} source={source} eclass={shown} />
      </div>
    </article>
  );
}

/** The classes that the result needs and the model has names for: a place to begin. */
async function first(data: PageData, source: Source): Promise<Hit[]> {
  const named = data.result.values.filter((value) => value.names.length > 0 && !value.is_constant);
  return Promise.resolve(
    named.slice(0, 60).map((value) => ({
      id: value.eclass,
      names: value.names,
      type: data.forms[value.form]?.type ?? "",
      is_needed: true,
      ops: [data.forms[value.form]?.op ?? ""],
      e_nodes: source.isServed
        ? 0
        : (data.egraph.classes.find((c) => c.id === value.eclass)?.enodes.length ?? 0),
    })),
  );
}

function Extent({ data, source }: { data: PageData; source: Source }) {
  const { e_nodes, e_classes } = data.summary;
  const held = data.egraph.classes.length;
  if (source.isServed || held === e_classes) {
    return (
      <p class="hint">
        {plural(e_nodes, "e-node")} in {plural(e_classes, "e-class")}: all of them are at hand.
      </p>
    );
  }
  return (
    <p class="note">
      This page holds {count(held)} of {plural(e_classes, "e-class")}: those of the original and of
      the result, and what is nearest to them.{" "}
      <code>relational-tensat view RUN.duckdb --serve</code> shows all.
    </p>
  );
}

function Hits({ hits, eclass }: { hits: Hit[]; eclass: number }) {
  if (hits.length === 0) return <p>Nothing found.</p>;
  return (
    <ul class="hits">
      {hits.map((hit) => (
        <li key={hit.id}>
          <a href={`#class=${hit.id}`} aria-current={hit.id === eclass ? "true" : undefined}>
            {hit.names[0] !== undefined ? short(hit.names[0], 40) : `e-class ${hit.id}`}
          </a>
          <span class="hint">
            {" "}
            {hit.ops.slice(0, 4).join(", ")} {shape(hit.type)}
            {hit.e_nodes > 1 ? `, ${plural(hit.e_nodes, "form")}` : ""}
            {hit.is_needed ? "" : ", not in the result"}
          </span>
        </li>
      ))}
    </ul>
  );
}

function One({ data, source, eclass }: Props) {
  const loaded = useLoaded(() => source.eclasses([eclass]), [eclass, source]);
  if (loaded === null) return <section>…</section>;
  if ("error" in loaded) return <section class="note">{loaded.error}</section>;
  const [found] = loaded.value;
  if (found === undefined) {
    return (
      <section class="note">
        This page does not hold e-class {eclass}.{" "}
        <code>relational-tensat view RUN.duckdb --serve</code> shows all of them.
      </section>
    );
  }
  const steps = stepsOfClass(data.film, found.id);
  return (
    <section class="eclass" data-class={found.id}>
      <h2>
        {found.names[0] === undefined ? `e-class ${found.id}` : short(found.names[0], 60)}
        {found.names.length > 0 ? <span class="hint"> e-class {found.id}</span> : null}
      </h2>
      <dl class="facts">
        {found.names.length > 1 ? (
          <>
            <dt>also</dt>
            <dd>
              {found.names
                .slice(1, 8)
                .map((name) => short(name, 60))
                .join(", ")}
            </dd>
          </>
        ) : null}
        <dt>shape</dt>
        <dd>{shape(found.type)}</dd>
        <dt>in the result</dt>
        <dd>{found.is_needed ? "yes" : "no: the result does without this value"}</dd>
        {found.is_constant ? (
          <>
            <dt>cost</dt>
            <dd>none: it is known before inference</dd>
          </>
        ) : null}
        <dt>in the film</dt>
        <dd>
          {steps.length > 0 ? null : data.film === null ? (
            <a href="#steps">{data.no_film ? "it was not found" : "not found yet"}</a>
          ) : (
            "no step touches it"
          )}
          {steps.slice(0, 12).map((step) => (
            <a key={step.number} href={`#step=${step.number}`} title={step.rule}>
              {step.number}{" "}
            </a>
          ))}
        </dd>
      </dl>
      <h3>{plural(found.enodes.length, "way")} to compute it, all equal</h3>
      <ENodes data={data} eclass={found} />
      <Unions eclass={found} />
      <h3>Neighbourhood</h3>
      <Neighbourhood data={data} source={source} centre={found} />
    </section>
  );
}

function ENodes({ data, eclass }: { data: PageData; eclass: EClass }) {
  const names = useMemo(() => namesOfClasses(data), [data]);
  return (
    <div class="scroll">
      <table class="enodes">
        <thead>
          <tr>
            <th />
            <th>operator</th>
            <th>operands</th>
            <th class="number">own cost</th>
            <th>made</th>
            <th class="number">result with it</th>
          </tr>
        </thead>
        <tbody>
          {eclass.enodes.map((enode) => (
            <Row key={enode.id} enode={enode} eclass={eclass} data={data} names={names} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What the model calls the values of the classes that both graphs have. */
function namesOfClasses(data: PageData): Map<number, string> {
  const values = [...data.result.values, ...data.original.values];
  return new Map(
    values.flatMap(({ eclass, names }) => (names[0] === undefined ? [] : [[eclass, names[0]]])),
  );
}

interface RowProps {
  enode: ENode;
  eclass: EClass;
  data: PageData;
  names: Map<number, string>;
}

function Row({ enode, eclass, data, names }: RowProps) {
  const form = data.forms[enode.form];
  const own = eclass.is_constant ? 0 : form?.costs_us[0];
  const more = enode.forced_us === null ? null : enode.forced_us - data.summary.after_us;
  return (
    <tr class={enode.chosen ? "chosen" : ""}>
      <td>{enode.chosen ? "✓ chosen" : enode.filtered ? "filtered" : ""}</td>
      <td>
        {form?.op} <span class="hint">{attributes(form)}</span>
      </td>
      <td>
        <Links classes={enode.children} names={names} />
      </td>
      <td class="number">{own === undefined || own === null ? "" : time(own)}</td>
      <td>
        {enode.rule === "" ? (
          "in the original"
        ) : (
          <>
            iteration {enode.iteration}, {enode.rule}
            {enode.birth ? (
              <span class="hint">
                {" "}
                at <Links classes={[enode.birth.root]} names={names} />
                {enode.birth.operands.length > 0 ? " of " : ""}
                <Links classes={enode.birth.operands.slice(0, 5)} names={names} />
              </span>
            ) : null}
          </>
        )}
      </td>
      <td class="number">{why(enode, eclass, more)}</td>
    </tr>
  );
}

/** Why an e-node was not chosen, as far as it is known. */
function why(enode: ENode, eclass: EClass, more: number | null): string {
  if (enode.chosen) return "";
  if (enode.filtered) return "it would close a cycle";
  if (!eclass.is_needed) return "the class is not needed";
  if (more === null) return "cyclic, or not computed";
  if (Math.abs(more) < 1e-6) return "as cheap";
  return `${more > 0 ? "+" : "−"}${time(Math.abs(more))}`;
}

function attributes(form: Form | undefined): string {
  const shown = Object.entries(form?.attrs ?? {}).filter(([, value]) => value !== "none");
  return short(shown.map(([name, value]) => `${name}=${String(value)}`).join(" "), 60);
}

function Links({ classes, names }: { classes: number[]; names: Map<number, string> }) {
  return (
    <>
      {classes.map((id, place) => (
        <a key={`${id} ${place}`} href={`#class=${id}`}>
          {names.has(id) ? short(names.get(id) ?? "", 24) : id}{" "}
        </a>
      ))}
    </>
  );
}

function Unions({ eclass }: { eclass: EClass }) {
  if (eclass.unions.length === 0)
    return <p class="hint">It never became one with another class.</p>;
  return (
    <details>
      <summary>{plural(eclass.unions.length, "union")} made it what it is</summary>
      <ol class="unions">
        {eclass.unions.map((union, place) => (
          <li key={place}>
            iteration {union.iteration}: {union.a} = {union.b}, by {union.rule}
          </li>
        ))}
      </ol>
    </details>
  );
}
