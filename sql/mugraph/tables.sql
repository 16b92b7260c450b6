-- The tables of a search for kernels. A variable is a bit; dims, axes and uses are sets of bits.

-- Configurations: which variables the grid splits (`grid`), and which one the loop traverses (`loop`, 0: none),
-- in how many iterations.
CREATE TABLE config (id INTEGER, job INTEGER, grid BIGINT, loop BIGINT, iterations INTEGER);

-- The extent of a variable in a tile of a configuration, for those that the program sums over: a block need not
-- sum over any other.
CREATE TABLE extent (config INTEGER, variable BIGINT, size INTEGER);

-- Over which variable the products of which inputs may be summed: see `structure.summable`. `carriers` are the
-- inputs that have the variable, `inputs` those of them that take part.
CREATE TABLE summable (variable BIGINT, op VARCHAR, carriers BIGINT, inputs BIGINT);

-- Terms: tensors of a block, as e-classes. `size` is how many operators it takes to compute one (`parts`: these
-- and itself), `dims` the variables that it has, `axes` the variables whose blocks it depends on, `uses` the
-- program's inputs, `loads` the tensors in device memory, `stage` 0 in the loop, 1 after it, 2 before it; `class` is that of its abstract expression, and
-- `value` the number of its fingerprint.
CREATE TABLE term (
    id INTEGER, config INTEGER, size INTEGER, dims BIGINT, axes BIGINT, uses BIGINT, loads BIGINT,
    stage INTEGER, class INTEGER, value UBIGINT, parts INTEGER[]
);

-- E-nodes: all derivations of a term; `variable` is the one that is reduced, or 0; `name` the function's.
CREATE TABLE derivation (term INTEGER, op VARCHAR, name VARCHAR, variable BIGINT, a INTEGER, b INTEGER);

-- Applications of operators that pruning lets pass, not evaluated yet.
CREATE TABLE candidate (
    config INTEGER, op VARCHAR, name VARCHAR, variable BIGINT, a INTEGER, b INTEGER, size INTEGER,
    dims BIGINT, axes BIGINT, uses BIGINT, loads BIGINT, stage INTEGER, class INTEGER, parts INTEGER[]
);

-- The same, evaluated: those of one size.
CREATE TABLE evaluated (
    id INTEGER, config INTEGER, op VARCHAR, name VARCHAR, variable BIGINT, a INTEGER, b INTEGER, size INTEGER,
    dims BIGINT, axes BIGINT, uses BIGINT, loads BIGINT, stage INTEGER, class INTEGER, parts INTEGER[], value UBIGINT
);

-- Tensors in device memory that kernels of a level can make, and how: by which configuration, from which term.
CREATE TABLE kernel_tensor (id INTEGER, class INTEGER);
CREATE TABLE implementation (tensor INTEGER, config INTEGER, term INTEGER);

-- For each set of tensors in device memory, the abstract classes that can be computed of them.
CREATE TABLE reached (tensors INTEGER, class INTEGER);
