-- The outcomes of the parts of a model with --fuse, those with kernels first.
SELECT source, outputs, operators, fate, reason, operators_us, kernel_us, mugraph
FROM fused_region
ORDER BY fate <> 'kernel', fate, source DESC, operators_us DESC NULLS LAST, outputs, reason
