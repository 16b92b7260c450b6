// Custom ops of onnxruntime by its C ABI: the few declarations that are needed; custom_op.c has the rest.
//
// OrtApi is a table of functions that only grows at its end, so a function's place in it is a fact for good.
// The places below, and the fields of OrtCustomOp, are those of API 18 (onnxruntime 1.18, 2024).
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef _WIN32
#include <unistd.h>
#endif

enum { API = 18, MOST_DIMS = 16, MOST_TENSORS = 64, MOST_LOOPS = 8, BLOCK = 512 };

typedef struct Status Status;    // OrtStatus: NULL where all went well
typedef struct Options Options;  // OrtSessionOptions
typedef struct Domain Domain;    // OrtCustomOpDomain
typedef struct Value Value;      // OrtValue
typedef struct Context Context;  // OrtKernelContext
typedef struct Info Info;        // OrtKernelInfo
typedef struct Shape Shape;      // OrtTensorTypeAndShapeInfo
typedef struct Inference Inference;  // OrtShapeInferContext
typedef void (*Function)(void);
typedef struct {  // OrtApiBase
  const Function *(*get_api)(uint32_t version);
  const char *(*version)(void);
} Base;

// The places in the table, each with the type of its function.
#define CREATE_STATUS ((Status * (*)(int code, const char *text)) api[0])
#define CREATE_DOMAIN ((Status * (*)(const char *name, Domain **made)) api[26])
#define ADD_OP ((Status * (*)(Domain *, const Op *)) api[27])
#define ADD_DOMAIN ((Status * (*)(Options *, Domain *)) api[28])
#define DATA_OF ((Status * (*)(Value *, void **data)) api[51])
#define RANK_OF ((Status * (*)(const Shape *, size_t *rank)) api[61])
#define DIMS_OF ((Status * (*)(const Shape *, int64_t *dims, size_t count)) api[62])
#define SHAPE_OF ((Status * (*)(const Value *, Shape **made)) api[65])
#define TEXT_OF ((Status * (*)(const Info *, const char *name, char *text, size_t *size)) api[87])
#define INPUT_OF ((Status * (*)(const Context *, size_t place, const Value **)) api[90])
#define OUTPUT_OF \
  ((Status * (*)(Context *, size_t place, const int64_t *dims, size_t rank, Value **)) api[91])
#define RELEASE_STATUS ((void (*)(Status *)) api[93])
#define RELEASE_SHAPE ((void (*)(Shape *)) api[99])
// A task for each number below a total, in threads of the session; since API 17. 0: no bound on batches.
#define PARALLEL_FOR \
  ((Status * (*)(const Context *, void (*task)(void *, size_t), size_t total, size_t batches, void *)) api[274])
enum { FAIL = 1, INVALID_ARGUMENT = 2 };  // OrtErrorCode

typedef struct {
  int rank;
  int64_t dims[MOST_DIMS];  // of a use: below 0 a multiple of the size of a loop, -1 that of the first
} Dims;

// OrtCustomOp of API 18, in the order that onnxruntime reads; what stands behind ``ours`` is not read by it.
typedef struct Op Op;
struct Op {
  uint32_t version;
  void *(*create)(const Op *, const Function *api, const Info *);
  const char *(*get_name)(const Op *);
  const char *(*get_provider)(const Op *);  // NULL is the processor
  int (*input_type)(const Op *, size_t place);
  size_t (*input_count)(const Op *);
  int (*output_type)(const Op *, size_t place);
  size_t (*output_count)(const Op *);
  void (*compute)(void *kernel, Context *);
  void (*destroy)(void *kernel);
  int (*input_kind)(const Op *, size_t place);  // 0: required
  int (*output_kind)(const Op *, size_t place);
  int (*input_memory)(const Op *, size_t place);  // 0: as the provider has it
  int (*variadic_inputs)(const Op *), (*are_inputs_alike)(const Op *);
  int (*variadic_outputs)(const Op *), (*are_outputs_alike)(const Op *);
  Status *(*create_or_fail)(const Op *, const Function *api, const Info *, void **kernel);
  Status *(*compute_or_fail)(void *kernel, Context *);
  Status *(*infer_shapes)(const Op *, Inference *);
  int (*start_version)(const Op *), (*end_version)(const Op *);
  size_t (*in_place)(int **inputs, int **outputs);
  void (*release_in_place)(int *, int *);
  size_t (*aliases)(int **inputs, int **outputs);
  void (*release_aliases)(int *, int *);
  // ours
  const char *name;
  int n_operands, n_results, n_uses;
  const int *types;   // of operands and results: ONNX's numbers, 1 is float
  const Dims *uses;   // of operands and results, for each way in which the model calls it
  const int64_t *loops;  // the sizes of the kernel's loops: 0 is any, below 0 ends them
  Status *(*run)(Context *, void *const *tensors);  // operands, results, and the sizes of the loops
  void (*run_block)(const float *operand, float *result);  // of an override: BLOCK elements, apart
};

extern const Function *api;
#define NO_MEMORY "no memory for what is between kernels"

typedef struct {
  void *const *tensors;
  long parts;
} Split;

// Run a kernel's parts in threads of the session; its whole work in this one where it is worth no other.
Status *in_parts(Context *context, void (*run)(void *, size_t), void *const *tensors, long most);
// Return how many parts the turns of a kernel's loops are worth, each of which takes so long.
long parts_of(const int64_t *sizes, int loops, double turn_ns, double least_ns);
// Let session options know ops. The domain is made once, and never given back: sessions go on using it.
Status *registered(Options *options, const Base *base, const char *name, Op *ops, int count);

// The fields of an op that differ; ``registered`` sets the others.
#define OP(NAME, OPERANDS, RESULTS, USES, TYPES, DIMS, LOOPS, RUN) \
  {.name = NAME, .n_operands = OPERANDS, .n_results = RESULTS, .n_uses = USES, .types = TYPES, \
   .uses = DIMS, .loops = LOOPS, .run = RUN}
#define OVERRIDE(NAME, RUN) \
  {.name = NAME, .n_operands = 1, .n_results = 1, .types = (const int[]){1, 1}, .run_block = RUN}
