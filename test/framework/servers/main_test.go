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
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// Tests start the test binary itself as a program; this variable selects its role.
const roleVariable = "SERVERS_TEST_ROLE"

const (
	roleWaiter         = "waiter" // ends with exitOnTerm on SIGTERM
	roleIgnoresSignals = "deaf"   // ignores SIGTERM
	roleParent         = "parent" // starts a waiter below the directory in its first argument, prints its pid, waits
	roleServer         = "server" // serves HTTP on the address in its first argument
)

const exitOnTerm = 7

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case roleWaiter:
		waiter()
	case roleIgnoresSignals:
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("started")
		select {}
	case roleParent:
		parent()
	case roleServer:
		server()
	default:
		os.Exit(m.Run())
	}
}

func waiter() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	fmt.Println("started")
	<-signals
	os.Exit(exitOnTerm)
}

func parent() {
	child, err := Start(Options{Dir: os.Args[1]}, "child", os.Args[0], nil, []string{roleVariable + "=" + roleWaiter})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(child.Pid())
	select {}
}

func server() {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	s := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
	fmt.Println(s.Serve(listener))
}
