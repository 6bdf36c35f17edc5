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

package tunnel

import (
	"io"
	stdlog "log"
	"net"
	"net/http"
	"sync"
)

const (
	// maxPending bounds the connections that are not authenticated yet, and maxPendingPerAddress these connections from one
	// address. Many clusters may share one address behind a load balancer.
	maxPending           = 512
	maxPendingPerAddress = 128
)

// discardLog drops the messages of net/http about connections, because anybody can cause them.
var discardLog = stdlog.New(io.Discard, "", 0)

// pendingConnections counts the connections whose handshake has not ended, and closes connections beyond the bounds.
type pendingConnections struct {
	lock      sync.Mutex
	addresses map[net.Conn]string
	count     map[string]int
}

// onState implements ConnState of [http.Server].
func (p *pendingConnections) onState(connection net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if !p.add(connection) {
			handshakes.WithLabelValues("too_many").Inc()
			_ = connection.Close()
		}
	case http.StateHijacked, http.StateClosed:
		p.remove(connection)
	case http.StateActive, http.StateIdle:
	}
}

func (p *pendingConnections) add(connection net.Conn) bool {
	address := addressOf(connection)
	p.lock.Lock()
	defer p.lock.Unlock()
	if len(p.addresses) >= maxPending || p.count[address] >= maxPendingPerAddress {
		return false
	}
	if p.addresses == nil {
		p.addresses, p.count = map[net.Conn]string{}, map[string]int{}
	}
	p.addresses[connection] = address
	p.count[address]++
	return true
}

func (p *pendingConnections) remove(connection net.Conn) {
	p.lock.Lock()
	defer p.lock.Unlock()
	address, found := p.addresses[connection]
	if !found {
		return
	}
	delete(p.addresses, connection)
	if p.count[address]--; p.count[address] == 0 {
		delete(p.count, address)
	}
}

// addressOf returns the address of the other end, without the port. All addresses of an IPv6 network of 64 bits count as one.
func addressOf(connection net.Conn) string {
	host, _, err := net.SplitHostPort(connection.RemoteAddr().String())
	if err != nil {
		return connection.RemoteAddr().String()
	}
	ip := net.ParseIP(host)
	if ip == nil || ip.To4() != nil {
		return host
	}
	return ip.Mask(net.CIDRMask(64, 128)).String()
}
