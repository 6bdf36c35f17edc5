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

package main

import (
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/test/clireference"
)

func TestReference(t *testing.T) {
	common := pflag.NewFlagSet("common", pflag.ContinueOnError)
	cluster := cli.NewClusterFlags(true)
	cluster.Namespace = nil
	cluster.AddFlags(common)
	root := newCommand(genericiooptions.NewTestIOStreamsDiscard())
	clireference.Verify(t, "../../docs/reference/cli-kubectl-synchub.md", root, common)
}
