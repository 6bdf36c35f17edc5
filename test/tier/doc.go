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

// Package tier names the tiers of the tests: quick ones, which `make test` runs, and all, which `make test-all` runs in one go and
// `make test-part` in parts.
// Its tests check that no package and no spec is in none. See docs/design/0026-test-tiers.md.
package tier
