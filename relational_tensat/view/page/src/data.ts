/** What a page shows: `relational_tensat/view/data` declares the same, and says what each field is. */

export interface Summary {
  model: string;
  cost_sources: string[];
  runs_on: string;
  gain: string;
  size: string;
  search: string;
  verified: string;
  before_us: number;
  after_us: number;
  bound_us: number;
  optimal: boolean;
  operators: [string, number, number][];
  terms: string;
  e_nodes: number;
  e_classes: number;
  iterations: number;
  stop_reason: string;
  kept_original: string;
  estimated_costs: string;
}

export interface OperatorForm {
  op: string;
  attrs: Record<string, string | number | boolean>;
  type: string;
  operands: string[];
  costs_us: (number | null)[];
  is_structure: boolean;
}

export interface ValueRow {
  id: string;
  eclass: number;
  enode: number;
  form: number;
  inputs: string[];
  names: string[];
  is_constant: boolean;
}

export interface GraphFrame {
  values: ValueRow[];
  outputs: string[];
}

export interface FrameChange {
  gone: string[];
  put: ValueRow[];
  outputs: string[];
}

export interface Condition {
  text: string;
  values: string;
}

export interface FilmStep {
  number: number;
  rule: string;
  law: string;
  backward: boolean;
  places: string[];
  found: string[];
  built: string[];
  replaced: string[];
  cost_us: number;
  operators: number;
  text: string;
  conditions: Condition[];
  evidence: string;
  check: string;
  change: FrameChange;
}

export interface Film {
  start: GraphFrame;
  start_us: number;
  steps: FilmStep[];
}

export interface IterationReport {
  iteration: number;
  e_nodes: number;
  e_classes: number;
  matches: number;
  unions: number;
  filtered: number;
  statements: number;
  seconds: number;
}

export interface ExtractionRow {
  iteration: number;
  e_nodes: number;
  cost_us: number;
  best_us: number;
  bound_us: number;
  optimal: boolean;
  seconds: number;
}

export interface CourseEvent {
  seconds: number;
  phase: string;
  iteration: number;
  incumbent_us: number | null;
  bound_us: number | null;
}

export interface RuleWork {
  name: string;
  law: string;
  matches: number;
  unions: number;
  e_nodes: number;
  extracted: number;
  seconds: number;
  saved_us: number;
  steps: number[];
  by_iteration: [number, number][];
}

export interface SubgraphReport {
  subgraph: number;
  kind: string;
  node_limit: number;
  seed_us: number;
  best_us: number | null;
  e_nodes: number;
  universe: number;
  iteration: number;
  stop_reason: string;
  seconds: number;
}

export interface TimeShare {
  phase: string;
  statement: string;
  runs: number;
  seconds: number;
}

export interface TreeDecision {
  decision: number;
  rule: string;
  rollouts: number;
  mean_ms: number;
  cost_us: number;
  best_us: number;
  e_nodes: number;
  seconds: number;
  least_us: number;
  median_us: number;
  nodes: number;
}

export interface TreeNodeRow {
  decision: number;
  id: number;
  parent: number;
  rule: string;
  visits: number;
  mean_ms: number;
  cost_us: number;
  e_nodes: number;
  state: string;
}

export interface SearchTree {
  decisions: TreeDecision[];
  nodes: TreeNodeRow[];
}

export interface SearchCourse {
  iterations: IterationReport[];
  extractions: ExtractionRow[];
  events: CourseEvent[];
  rules: RuleWork[];
  subgraphs: SubgraphReport[];
  tree: SearchTree | null;
  time: TimeShare[];
}

export interface Birth {
  root: number;
  operands: number[];
}

export interface ENode {
  id: number;
  form: number;
  children: number[];
  iteration: number;
  rule: string;
  filtered: boolean;
  chosen: boolean;
  birth: Birth | null;
  forced_us: number | null;
}

export interface Union {
  iteration: number;
  rule: string;
  a: number;
  b: number;
}

export interface EClass {
  id: number;
  type: string;
  names: string[];
  is_constant: boolean;
  is_needed: boolean;
  enodes: ENode[];
  unions: Union[];
  users: number[];
}

export interface Hit {
  id: number;
  names: string[];
  type: string;
  is_needed: boolean;
  ops: string[];
  e_nodes: number;
}

export interface SampleRow {
  classes: EClass[];
}

export type Cell = string | number | boolean | null | Cell[] | { [key: string]: Cell };

export interface QueryAnswer {
  columns: string[];
  rows: Cell[][];
  is_cut: boolean;
}

export interface Example {
  title: string;
  query: string;
  answer: QueryAnswer;
}

export interface TreePlaceRow {
  places: string[];
  status: string;
  made_by: string;
  iteration: number;
  cost_us: number | null;
  detail: string;
}

export interface Narrowing {
  requirement: string;
  left: number;
  instead: string[];
}

export interface Unused {
  rule: string;
  conclusion: string;
  steps: Narrowing[];
  places: TreePlaceRow[];
}

export interface FilmAndSearch {
  film: Film;
  search: SearchCourse;
}

export interface PageData {
  version: number;
  summary: Summary;
  forms: OperatorForm[];
  original: GraphFrame;
  result: GraphFrame;
  film: Film | null;
  no_film: string;
  search: SearchCourse;
  egraph: SampleRow;
  kernels: FusedUse[];
  running: RunningUse[];
  unused: Unused[];
  examples: Example[];
}

export interface MuNode {
  id: string;
  kind: string;
  title: string;
  about: string[];
  dims: string;
  inputs: string[];
  stage: string;
  kernel: number | null;
  inner: MuNode[];
}

export interface MuTransfer {
  tensor: string;
  is_load: boolean;
  maps: string;
  tile: string;
  moved_bytes: number;
  tensor_bytes: number;
}

export interface MuKernel {
  name: string;
  grid: number[];
  loop: number;
  shared_bytes: number | null;
  transfers: MuTransfer[];
  block: MuNode[];
}

export interface MuDrawing {
  name: string;
  element: string;
  graph: MuNode[];
  kernels: MuKernel[];
  text: string;
}

export interface ReplacedOperator {
  id: string;
  op: string;
  type: string;
  inputs: string[];
  cost_us: number | null;
  moved_bytes: number;
}

export interface FusedUse {
  key: string;
  eclass: number;
  enode: number;
  chosen_uses: number;
  uses: number;
  cost_us: number | null;
  operands: string[];
  replaced: ReplacedOperator[];
  drawing: MuDrawing;
}

export interface RunningUse {
  name: string;
  operators: string[];
  places: number;
  kernel_us: number;
  plain_us: number;
  code: string;
}

export interface KernelPage {
  title: string;
  drawings: MuDrawing[];
}

export type AnyPage = PageData | KernelPage;

/** Read the data that the page carries: of a run, or of kernels alone. */
export function readData(root: Document): { data: AnyPage; server: string } {
  const block = root.getElementById("data");
  if (block === null) throw new Error("the page has no data");
  return {
    data: JSON.parse(block.textContent ?? "") as AnyPage,
    server: block.getAttribute("data-server") ?? "",
  };
}
