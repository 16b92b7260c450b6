/** The page: its head, its views, and which of them the address names. */
import { useEffect, useState } from "preact/hooks";
import { Theme } from "./parts";
import type { PageData } from "./data";
import { type Route, readRoute } from "./route";
import { Change } from "./views/Change";
import type { Source } from "./source";
import { Ask } from "./views/Ask";
import { Kernels } from "./views/Kernels";
import { RunningKernels } from "./views/RunningKernels";
import { EGraph } from "./views/EGraph";
import { Search } from "./views/Search";
import { Steps } from "./views/Steps";

const VIEWS = {
  change: "The change",
  steps: "The steps",
  search: "The search",
  egraph: "The e-graph",
  ask: "Ask",
} as const;

/** The views that a run has something for. */
function viewsOf(data: PageData): [string, string][] {
  const hasSome = data.kernels.length + data.running.length > 0;
  const kernels: [string, string][] = hasSome ? [["kernels", "Kernels"]] : [];
  return [...Object.entries(VIEWS), ...kernels];
}

export function App({ data: first, source }: { data: PageData; source: Source }) {
  const [data, setData] = useState(first);
  const route = useRoute();
  const isNarrow = useNarrow();
  useKeys(viewsOf(data));
  return (
    <>
      <Head data={data} route={route} />
      <main>
        {route.view === "change" ? <Change data={data} isNarrow={isNarrow} /> : null}
        {route.view === "steps" ? (
          <Steps
            data={data}
            source={source}
            number={route.step}
            onFilm={(answer) => {
              setData({ ...data, ...answer });
            }}
          />
        ) : null}
        {route.view === "search" ? <Search data={data} source={source} /> : null}
        {route.view === "egraph" ? (
          <EGraph data={data} source={source} eclass={route.eclass} />
        ) : null}
        {route.view === "ask" ? <Ask data={data} source={source} /> : null}
        {route.view === "kernels" && data.running.length > 0 ? (
          <RunningKernels kernels={data.running} />
        ) : null}
        {route.view === "kernels" && data.kernels.length > 0 ? <Kernels data={data} /> : null}
      </main>
    </>
  );
}

function Head({ data, route }: { data: PageData; route: Route }) {
  const { summary } = data;
  return (
    <header>
      <h1>
        {summary.model}
        {summary.runs_on ? <span class="hint">, for {summary.runs_on}</span> : null}
      </h1>
      <p class="figures">
        <strong>{summary.gain}</strong>
        {[summary.size, summary.verified, summary.search || summary.stop_reason]
          .filter(Boolean)
          .map((text) => (
            <span key={text}>{text}</span>
          ))}
      </p>
      {summary.kept_original ? <p class="note">{summary.kept_original}</p> : null}
      <nav aria-label="views">
        {viewsOf(data).map(([view, title], n) => (
          <a key={view} href={`#${view}`} aria-current={route.view === view ? "page" : undefined}>
            <kbd>{n + 1}</kbd> {title}
          </a>
        ))}
        <Theme />
      </nav>
    </header>
  );
}

function useRoute(): Route {
  const [route, setRoute] = useState(() => readRoute(location.hash));
  useEffect(() => {
    const follow = () => setRoute(readRoute(location.hash));
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return route;
}

function useNarrow(): boolean {
  const query = matchMedia("(max-width: 700px)");
  const [isNarrow, setNarrow] = useState(query.matches);
  useEffect(() => {
    const follow = () => setNarrow(query.matches);
    query.addEventListener("change", follow);
    return () => query.removeEventListener("change", follow);
  }, [query]);
  return isNarrow;
}

/** Digits choose a view. */
function useKeys(views: [string, string][]): void {
  useEffect(() => {
    const follow = (event: KeyboardEvent) => {
      const isText = /^(INPUT|TEXTAREA|SELECT)$/.test((event.target as Element).tagName);
      const view = views[Number(event.key) - 1]?.[0];
      if (!isText && view !== undefined && !event.ctrlKey && !event.metaKey && !event.altKey) {
        location.hash = view;
      }
    };
    addEventListener("keydown", follow);
    return () => removeEventListener("keydown", follow);
  }, [views.length]);
}
