// What all custom ops share: each library has this once, and rows of its own ops.
#include "custom_op.h"

// Of a size below 0, which loop it is of, and how many times.
static int loop_of(int64_t size) { return (int)((-size - 1) % MOST_LOOPS); }
static int64_t factor_of(int64_t size) { return (-size - 1) / MOST_LOOPS + 1; }

const Function *api;
static long processors = 1;  // a session has as many threads at most that are worth anything

Status *in_parts(Context *context, void (*run)(void *, size_t), void *const *tensors, long most) {
  Split split = {tensors, most < processors ? most : processors};
  if (split.parts > 1) return PARALLEL_FOR(context, run, (size_t)split.parts, 0, &split);
  split.parts = 1;
  run(&split, 0);
  return NULL;
}

long parts_of(const int64_t *sizes, int loops, double turn_ns, double least_ns) {
  double parts = turn_ns / least_ns;
  for (int loop = 0; loop < loops; ++loop) parts *= (double)sizes[loop];
  return parts < 1e9 ? (long)parts : 1000000000;
}

// Return a status with a line: which op, which operand, what it has; and the first size that it may have.
static Status *refused(const Op *op, int place, const Dims *found, const int64_t *sizes) {
  char line[1024];
  const Dims *own = &op->uses[place];
  int at = snprintf(line, sizeof line, "%s: operand %d is [", op->name, place);
  for (int dim = 0; dim < found->rank && dim < MOST_DIMS && at < 900; ++dim)
    at += snprintf(line + at, sizeof line - at, dim ? ", %lld" : "%lld", (long long)found->dims[dim]);
  if (at < 900) at += snprintf(line + at, sizeof line - at, "], expected [");
  for (int dim = 0; dim < own->rank && at < 900; ++dim) {
    const int64_t own_size = own->dims[dim], factor = own_size < 0 ? factor_of(own_size) : 1;
    const int64_t size = own_size < 0 ? sizes[loop_of(own_size)] : own_size;
    if (dim) at += snprintf(line + at, sizeof line - at, ", ");
    if (size >= 0) at += snprintf(line + at, sizeof line - at, "%lld", (long long)(size * factor));
    else if (factor == 1) at += snprintf(line + at, sizeof line - at, "any");
    else at += snprintf(line + at, sizeof line - at, "any multiple of %lld", (long long)factor);
  }
  if (at < 900) snprintf(line + at, sizeof line - at, "]");
  return CREATE_STATUS(INVALID_ARGUMENT, line);
}

static Status *read_dims(const Value *value, Dims *dims) {
  Shape *shape;
  size_t rank;
  Status *status = SHAPE_OF(value, &shape);
  if (status) return status;
  status = RANK_OF(shape, &rank);
  if (!status && rank <= MOST_DIMS) status = DIMS_OF(shape, dims->dims, rank);
  dims->rank = rank <= MOST_DIMS ? (int)rank : MOST_DIMS + 1;
  RELEASE_SHAPE(shape);
  return status;
}

// Whether an operand is as a use has it; the sizes of loops that are not known yet become its own.
static int fits(const Dims *found, const Dims *own, int64_t *sizes) {
  if (found->rank != own->rank) return 0;
  for (int dim = 0; dim < own->rank; ++dim) {
    const int64_t size = found->dims[dim], wanted = own->dims[dim];
    if (wanted >= 0) {
      if (size != wanted) return 0;
      continue;
    }
    int64_t *loop = &sizes[loop_of(wanted)];
    const int64_t factor = factor_of(wanted);
    if (size % factor) return 0;
    if (*loop < 0) *loop = size / factor;
    if (*loop != size / factor) return 0;
  }
  return 1;
}

// Run a kernel, if its operands have sizes that it was made for: it looks at none itself.
static Status *compute_or_fail(void *kernel, Context *context) {
  const Op *op = kernel;
  const int n_tensors = op->n_operands + op->n_results;
  int64_t sizes[MOST_LOOPS] = {0}, first[MOST_LOOPS];
  void *tensors[MOST_TENSORS + 1];
  Dims dims[MOST_TENSORS];
  Status *status;
  for (int place = 0; place < op->n_operands; ++place) {
    const Value *value = NULL;
    if ((status = INPUT_OF(context, place, &value))) return status;
    if (!value) return CREATE_STATUS(INVALID_ARGUMENT, "an operand is missing");
    if ((status = read_dims(value, &dims[place]))) return status;
    if ((status = DATA_OF((Value *)value, &tensors[place]))) return status;
  }
  const Dims *use = NULL;
  int differs = 0;
  for (int number = 0; number < op->n_uses && !use; ++number) {
    const Dims *own = op->uses + number * n_tensors;
    int place = 0;
    for (int loop = 0; op->loops[loop] >= 0; ++loop) sizes[loop] = op->loops[loop] ? op->loops[loop] : -1;
    while (place < op->n_operands && fits(&dims[place], &own[place], sizes)) ++place;
    if (place == op->n_operands) use = own;
    if (!number) differs = place, memcpy(first, sizes, sizeof first);
  }
  if (!use) return refused(op, differs, &dims[differs], first);
  for (int place = op->n_operands; place < n_tensors; ++place) {
    Value *value = NULL;
    Dims own = use[place];
    for (int dim = 0; dim < own.rank; ++dim)
      if (own.dims[dim] < 0) own.dims[dim] = sizes[loop_of(own.dims[dim])] * factor_of(own.dims[dim]);
    status = OUTPUT_OF(context, place - op->n_operands, own.dims, own.rank, &value);
    if (status) return status;
    if (!value) return CREATE_STATUS(FAIL, "a result is missing");
    if ((status = DATA_OF(value, &tensors[place]))) return status;
  }
  tensors[n_tensors] = sizes;
  return op->run(context, tensors);
}

static void compute(void *kernel, Context *context) {
  Status *status = compute_or_fail(kernel, context);  // called by nobody since API 16
  if (status) RELEASE_STATUS(status);
}
static void *create(const Op *op, const Function *table, const Info *info) { return (void *)op; }
static Status *create_or_fail(const Op *op, const Function *table, const Info *info, void **kernel) {
  *kernel = (void *)op;  // a kernel has no state: it lives as long as the library
  return NULL;
}
static void destroy(void *kernel) {}
static const char *get_name(const Op *op) { return op->name; }
static const char *get_provider(const Op *op) { return NULL; }
static int input_type(const Op *op, size_t place) { return op->types[place]; }
static int output_type(const Op *op, size_t place) { return op->types[op->n_operands + place]; }
static size_t input_count(const Op *op) { return op->n_operands; }
static size_t output_count(const Op *op) { return op->n_results; }
static int none_at(const Op *op, size_t place) { return 0; }
static int one(const Op *op) { return 1; }
static int any_version(const Op *op) { return INT32_MAX; }
static size_t no_pairs(int **inputs, int **outputs) { return 0; }
static void release_pairs(int *inputs, int *outputs) {}

// Fields that all ops have alike.
#define OF_ALL \
  .version = API, .create = create, .get_name = get_name, .get_provider = get_provider, \
  .input_type = input_type, .input_count = input_count, .output_type = output_type, \
  .output_count = output_count, .compute = compute, .destroy = destroy, .input_kind = none_at, \
  .output_kind = none_at, .input_memory = none_at, .variadic_inputs = one, .are_inputs_alike = one, \
  .variadic_outputs = one, .are_outputs_alike = one, .end_version = any_version, \
  .aliases = no_pairs, .release_aliases = release_pairs

static const Op of_kernel = {
    OF_ALL, .create_or_fail = create_or_fail, .compute_or_fail = compute_or_fail, .start_version = one,
    .in_place = no_pairs, .release_in_place = release_pairs};

// Overrides: onnxruntime's own operators of one operand, element by element, of any size, in place or not.

static Status *create_override(const Op *op, const Function *table, const Info *info, void **kernel) {
  char text[16] = "none";
  size_t size = sizeof text;
  Status *status = TEXT_OF(info, "approximate", text, &size);
  if (status) {  // it has no such attribute, or a longer one
    RELEASE_STATUS(status);
    if (size > sizeof text) return CREATE_STATUS(INVALID_ARGUMENT, "an attribute that no kernel has");
    strcpy(text, "none");
  }
  if (strncmp(text, "none", sizeof text))
    return CREATE_STATUS(INVALID_ARGUMENT, "an approximation that no kernel has");
  *kernel = (void *)op;
  return NULL;
}

enum { LEAST_PART = 16384 };  // elements of one operand that are worth a thread

typedef struct {
  const Op *op;
  const float *given;
  float *result;
  int64_t count;
} Blocks;

static void run_blocks(void *data, size_t part) {
  const Split *split = data;
  const Blocks *all = split->tensors[0];
  const int64_t blocks = (all->count + BLOCK - 1) / BLOCK;
  const int64_t first = blocks * (int64_t)part / split->parts, last = blocks * ((int64_t)part + 1) / split->parts;
  for (int64_t at = first * BLOCK; at < last * BLOCK; at += BLOCK) {
    const size_t own = all->count - at < BLOCK ? (size_t)(all->count - at) : BLOCK;
    float operand[BLOCK] = {0}, computed[BLOCK];  // a copy: the result may lie where the operand does
    memcpy(operand, all->given + at, own * sizeof(float));
    if (own == BLOCK) {
      all->op->run_block(operand, all->result + at);
    } else {
      all->op->run_block(operand, computed);
      memcpy(all->result + at, computed, own * sizeof(float));
    }
  }
}

static Status *override(void *kernel, Context *context) {
  const Op *op = kernel;
  const Value *value = NULL;
  Value *made = NULL;
  void *given, *result;
  Dims dims;
  Status *status;
  if ((status = INPUT_OF(context, 0, &value))) return status;
  if (!value) return CREATE_STATUS(INVALID_ARGUMENT, "an operand is missing");
  if ((status = read_dims(value, &dims))) return status;
  if (dims.rank > MOST_DIMS) return CREATE_STATUS(INVALID_ARGUMENT, "an operand of too many dims");
  if ((status = OUTPUT_OF(context, 0, dims.dims, dims.rank, &made))) return status;
  if (!made) return CREATE_STATUS(FAIL, "a result is missing");
  if ((status = DATA_OF((Value *)value, &given))) return status;
  if ((status = DATA_OF(made, &result))) return status;
  Blocks blocks = {op, given, result, 1};
  for (int dim = 0; dim < dims.rank; ++dim) blocks.count *= dims.dims[dim];
  void *tensors[] = {&blocks};
  return in_parts(context, run_blocks, tensors, blocks.count / LEAST_PART);
}

static int since_20(const Op *op) { return 20; }  // as of version 1 it would end blocks of convolutions
static size_t one_pair(int **inputs, int **outputs) {
  *inputs = calloc(1, sizeof **inputs);
  *outputs = calloc(1, sizeof **outputs);
  return *inputs && *outputs ? 1 : 0;
}
static void free_pairs(int *inputs, int *outputs) {
  free(inputs);
  free(outputs);
}
static const Op of_override = {
    OF_ALL, .create_or_fail = create_override, .compute_or_fail = override, .start_version = since_20,
    .in_place = one_pair, .release_in_place = free_pairs};

Status *registered(Options *options, const Base *base, const char *name, Op *ops, int count) {
  static Domain *domain;
  const Function *table = base->get_api(API);
  if (!table) {  // older than 1.18: the place of CREATE_STATUS is that of the first version
    api = base->get_api(1);
    return api ? CREATE_STATUS(FAIL, "kernels need onnxruntime 1.18 or later") : NULL;
  }
  if (domain && table != api)
    return CREATE_STATUS(FAIL, "kernels are used by another onnxruntime in this process");
  api = table;
#ifdef _SC_NPROCESSORS_ONLN
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  processors = online < 1 ? 1 : online;
#else
  processors = 8;
#endif
  if (!domain) {
    Domain *made;
    Status *status = CREATE_DOMAIN(name, &made);
    for (int number = 0; number < count && !status; ++number) {
      memcpy(&ops[number], ops[number].run_block ? &of_override : &of_kernel, offsetof(Op, name));
      status = ADD_OP(made, &ops[number]);
    }
    if (status) return status;
    domain = made;
  }
  return ADD_DOMAIN(options, domain);
}
