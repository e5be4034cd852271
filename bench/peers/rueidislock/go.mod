module libredlock/bench/rueidislock

go 1.26.0

require (
	github.com/redis/rueidis v1.0.79
	libredlock/bench/contender v0.0.0
)

require golang.org/x/sys v0.47.0 // indirect

replace libredlock/bench/contender => ../go-contender
