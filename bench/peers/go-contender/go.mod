module libredlock/bench/contender

go 1.26.0
