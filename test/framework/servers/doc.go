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

// Package servers starts the real programs that tests and the demo run against: a kcp, target clusters
// (kube-apiserver on an etcd, and optionally the controllers, scheduler and fake nodes that make workloads
// become Available), and the hub's own binary.
//
// A [Process] is one run of a program. A [Server] is a process with an address. It is ready when its start function
// returns, and it can be paused, killed and started again with the same ports and data. [KCP], [Etcd] and [Target] consist
// of servers, and an [Environment] is one kcp with targets, started and stopped together.
//
// The package depends on no test library. All servers listen only on 127.0.0.1, and none outlives the program that started
// it, however that program ends.
package servers
