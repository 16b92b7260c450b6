/** Why a rule did not change the result: how far its pattern got, and what became of its matches. */
import type { Unused } from "../data";
import { time } from "../format";
import { useLoaded } from "../loading";
import type { Source } from "../source";
import { Table } from "../table";

export function WhyUnused({
  rule,
  matches,
  source,
}: {
  rule: string;
  matches: number;
  source: Source;
}) {
  const loaded = useLoaded(() => source.whyUnused(rule), [rule, source]);
  if (loaded === null) return <p>…</p>;
  if ("error" in loaded) return <p class="note">{loaded.error}</p>;
  if (loaded.value === null) {
    return (
      <p>
        {matches === 0
          ? "Its pattern never matched. "
          : "It matched, and no step of the film is one of its. "}
        How far it got: <code>relational-tensat explain RUN.duckdb --why-not {rule}</code>, or{" "}
        <code>view RUN.duckdb --serve</code>.
      </p>
    );
  }
  return <Funnel unused={loaded.value} />;
}

function Funnel({ unused }: { unused: Unused }) {
  return (
    <div class="funnel">
      <p>
        <strong>{unused.conclusion}</strong>
      </p>
      <Table
        columns={["left", "after", "there was instead"]}
        rows={unused.steps.map((step) => [step.left, step.requirement, step.instead.join(", ")])}
      />
      {unused.places.length > 0 ? (
        <Table
          columns={["place", "what became of it", "made by", "result with it", "detail"]}
          rows={unused.places.map((place) => [
            place.places.join(", "),
            place.status,
            place.made_by,
            place.cost_us === null ? "" : time(place.cost_us),
            place.detail,
          ])}
        />
      ) : null}
    </div>
  );
}
