#!/bin/sh
# The study, from a clone of the source (README.md) to its numbers. It takes hours; run it again to continue.
set -eu
# on Linux without a GPU: memory stays with the process after a step, which makes training a third faster
export MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=8589934592
# The book of January 2021, which the start model reads, comes from the interval that ends then.
dates="20201201 20210101 20220101 20230101 20240101 20250101 20260101"
python examples/factbook/convert.py factbook/clone factbook/study-dumps $dates \
    --relations P6 P35 P36 P100001 P100002 P100011
before=
for date in $dates; do
    [ -z "$before" ] || temporalwiki build $before $date --dumps factbook/study-dumps --out factbook/study \
        --unchanged-fraction 0.8 --caps none --include wikipedia
    before=$date
done
temporalwiki train --recipe examples/factbook/start.yaml
temporalwiki experiment examples/factbook/year.yaml
python examples/factbook/small.py factbook/start factbook/small
temporalwiki train --recipe examples/factbook/start.yaml --model factbook/small --output factbook/small-start \
    --epochs 24 --learning-rate 1e-3
temporalwiki experiment examples/factbook/small.yaml
temporalwiki experiment examples/factbook/years.yaml
temporalwiki experiment examples/factbook/rates.yaml --jobs 2
temporalwiki experiment examples/factbook/experiment.yaml --jobs 2
for method in diff study shuffled; do
    model=$(echo factbook/small-experiment/models/$method-seed0-20210101-20220101-*)
    temporalwiki evaluate --model $model --data factbook/study --config probes-20210101-20220101 --limit 300 \
        --tasks learned_and_forgotten --forms name,cloze,question --start factbook/small-start --output factbook/forms
done
python examples/factbook/scores.py docs/study/scores.parquet factbook/experiment/results \
    small=factbook/small-experiment/results rates=factbook/rates/results 'small, forms=factbook/forms'
