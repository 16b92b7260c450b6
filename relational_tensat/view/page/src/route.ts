/** What an address names: `#change`, `#step=7`, `#search`, `#class=12`, `#ask`, `#kernels`. */

export interface Route {
  view: "change" | "steps" | "search" | "egraph" | "ask" | "kernels";
  step: number;
  eclass: number;
}

export function readRoute(hash: string): Route {
  const [name = "", value = ""] = hash.replace(/^#/, "").split("=");
  const number = /^\d+$/.test(value) ? Number(value) : 0;
  const route: Route = { view: "change", step: 0, eclass: 0 };
  if (name === "step" || name === "steps") return { ...route, view: "steps", step: number };
  if (name === "class" || name === "egraph") return { ...route, view: "egraph", eclass: number };
  if (name === "search" || name === "ask" || name === "kernels") return { ...route, view: name };
  return route;
}
