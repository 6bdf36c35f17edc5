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

// Command release prepares a release for goreleaser: it takes the notes from the changelog, checks that the packaged charts are of
// the version, and gives the files in the chart's archive the time of the commit, so that the same commit makes the same archive.
//
//	go run ./hack/release [-version v0.1.0] -created 2026-02-03T04:05:06Z -notes FILE CHART.tgz...
//
// Without a version it takes the notes of what is not released yet, for a snapshot.
package main
