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

// Command site builds the documentation site from the Markdown files of the repository, as static pages without
// scripts. `make docs` runs it from the root of the repository.
//
// docs/README.md is both the index on GitHub and the navigation of the site: a page that it does not list is an error, and
// so is a link that leads nowhere. goldmark parses Markdown as GitHub does; the rest is two templates. A site generator
// such as Hugo would take minutes to build, for features that these pages do not use.
package main
