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
	"fmt"
	"strings"
)

// summary describes the next steps for the user, with commands to paste in the root of the repository.
func (d *demo) summary() string {
	var text strings.Builder
	kubectl := func(kubeconfig, args string) {
		fmt.Fprintf(&text, "  bin/kubectl --kubeconfig %s %s\n", d.state.relative(d.state.kubeconfig(kubeconfig)), args)
	}
	section := func(title string) { fmt.Fprintf(&text, "\n%s\n", title) }

	text.WriteString("\nLook around with these commands, in the root of the repository.\n")
	section("What the operator published and registered:")
	kubectl("hosting", "get publishedresources")
	kubectl("inventory", "get synctargets --show-labels")
	for _, target := range d.targets {
		section(fmt.Sprintf("The mailbox of %s, and %[1]s itself:", target.name))
		kubectl(mailboxOf(target.name), "get syncerconfigs")
		kubectl(mailboxOf(target.name), "get deployments,configmaps -A")
		kubectl(target.name, "get deployments,pods -A")
	}
	last := d.targets[len(d.targets)-1]
	change := fmt.Sprintf("deployment %s -n %s", common.deployment, common.namespace)
	section("Change something in a mailbox, or break something on a cluster, and see it follow:")
	kubectl(mailboxOf(last.name), "scale "+change+" --replicas 5")
	kubectl(last.name, "delete "+change)
	kubectl(last.name, "get "+change)
	kubectl(mailboxOf(last.name), "get "+change)
	section("What is written once, and where it runs:")
	fmt.Fprintf(&text, "  bin/kubectl-synchub --kubeconfig %s describe placement %s\n", d.state.relative(d.state.kubeconfig("shop")), placement)
	kubectl("shop", "get edgeplacements,singleplacementslices,placementrevisions")
	kubectl("shop", fmt.Sprintf("scale deployment %s -n %s --replicas 3", web, shopNamespace))
	section("The hub's own account:")
	fmt.Fprintf(&text, "  %s\n", d.state.relative(d.hub.LogFile()))
	fmt.Fprintf(&text, "  http://%s/metrics\n", d.hub.metrics)
	text.WriteString("\nEverything runs until Ctrl-C; a second one ends it at once.")
	return text.String()
}
