# Runs the benchmarks: python3 -m driver.main, in the folder bench. run.sh does that.
