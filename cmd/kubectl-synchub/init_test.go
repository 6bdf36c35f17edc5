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

	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

func TestInit(t *testing.T) {
	tier.Thorough(t)
	kcp, g := suite.KCP(t), NewWithT(t)
	useConfig(t, kcp.Workspace("root"))
	const provider = "root:init"
	command := func(more ...string) []string {
		return append([]string{"init", "--provider-workspace", provider, "--hub-user", "another"}, more...)
	}
	pre := func() string { return plugin(t, "check", "--pre", "--provider-workspace", provider).out }
	fail(t, "set --hub-user to the name of the hub's kcp user", "init")
	fail(t, `--dry-run: "yes" is none of none, client and server`, command("--dry-run=yes")...)
	fail(t, "has no /clusters/ in its path", command("--server", "https://127.0.0.1:1")...)

	shown := succeed(t, command("--dry-run=server", "-o", "yaml")...)
	g.Expect(shown.out).To(ContainSubstring("kind: APIExport"))
	g.Expect(shown.errs).To(ContainSubstring("created    Workspace " + provider + " (dry run)"))
	g.Expect(pre()).To(MatchRegexp(finding("provider", "ok", "`kubectl synchub init` can prepare "+provider+": it would create or change ")))

	g.Expect(succeed(t, command()...).out).To(ContainSubstring("created    Workspace " + provider + "\n"))
	g.Expect(succeed(t, command()...).out).NotTo(Or(ContainSubstring("created"), ContainSubstring("updated")))
	g.Expect(pre()).To(MatchRegexp(finding("provider", "ok", provider+" is prepared for this version")))
}
