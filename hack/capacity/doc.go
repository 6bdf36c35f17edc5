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

// Command capacity computes what a fleet needs: replicas of the hub, their memory, requests to kcp, and shards of kcp. It
// computes from the measured costs in RESULTS.md and in the documentation, and simulates how SyncTargets are divided among
// replicas.
//
//	go -C hack/capacity run . [-clusters 100,1000,10000] [-objects 1000] [-memory-limit 16]
//
// It prints tables in Markdown. With -page it puts them into a page in place of the former ones, and with -chart it draws the
// chart.
package main
