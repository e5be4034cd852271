// The client that rueidislock gets: one connection a node, a key each.

package main

import (
	"context"
	"strings"

	"github.com/redis/rueidis"
)

// nodes stands where rueidislock's users have a Redis Cluster: it sends each of a lock's keys to a
// node of its own, as the cluster's client sends it to the node of its slot. Only what rueidislock
// calls is routed.
type nodes struct {
	rueidis.Client // the first node's, which also builds the commands
	all            []rueidis.Client
}

// connectNodes is a ClientBuilder: a client for each of the option's addresses, in their order.
func connectNodes(option rueidis.ClientOption) (rueidis.Client, error) {
	var n nodes
	for _, address := range option.InitAddress {
		one := option
		one.InitAddress = []string{address}
		one.ForceSingleClient = true // a node that is down comes back
		client, err := rueidis.NewClient(one)
		if client == nil {
			for _, earlier := range n.all {
				earlier.Close()
			}
			return nil, err
		}
		n.all = append(n.all, client)
	}
	n.Client = n.all[0]
	return &n, nil
}

// Do routes a script's call: EVALSHA sha 1 rueidislock:<i>:<name> … goes to node i.
func (n *nodes) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	key := command.Commands()[3]
	index := 0
	for _, digit := range strings.SplitN(key, ":", 3)[1] {
		index = index*10 + int(digit-'0')
	}
	return n.all[index].Do(ctx, command)
}

func (n *nodes) Close() {
	for _, client := range n.all {
		client.Close()
	}
}
