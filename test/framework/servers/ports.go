/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package servers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
)

// Ports are from below the range that the kernel uses for outgoing connections. Otherwise a client that keeps dialing a
// stopped server could get that very port as its local port, and the server could not start again.
//
// Several processes may look for ports at the same time, and none knows the ports that another is about to use. Each
// process therefore uses one of several slots, and further slots only when its own is full: a large fleet has more targets than a slot has ports.
const (
	firstPort       = 15000
	portCount       = 15000
	portSlots       = 20
	attemptsPerSlot = 1000
)

var allocatedPorts = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// FreePort returns a TCP port on 127.0.0.1 on which nothing listens. It never returns a port twice.
func FreePort() (int, error) {
	allocatedPorts.Lock()
	defer allocatedPorts.Unlock()
	for attempt := range attemptsPerSlot * portSlots {
		slot := (os.Getpid() + attempt/attemptsPerSlot) % portSlots
		port := firstPort + rand.IntN(portCount/portSlots)*portSlots + slot //nolint:gosec // a port is no secret
		if allocatedPorts.ports[port] || !isFree(port) {
			continue
		}
		allocatedPorts.ports[port] = true
		return port, nil
	}
	return 0, fmt.Errorf("no free port found on 127.0.0.1 between %d and %d", firstPort, firstPort+portCount-1)
}

func isFree(port int) bool {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address(port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	var errs []error
	for i := range ports {
		var err error
		if ports[i], err = FreePort(); err != nil {
			errs = append(errs, err)
		}
	}
	return ports, errors.Join(errs...)
}

func address(port int) string {
	return net.JoinHostPort(loopback, strconv.Itoa(port))
}
