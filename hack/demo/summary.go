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
	"context"
	"fmt"
	"strings"
)

// ask asks the plugin what an operator and a team would ask.
func (d *demo) ask(ctx context.Context) error {
	first := d.teams[0]
	d.screen.Println("Ask the fleet:\n")
	for _, question := range []command{
		in("inventory", "synchub", "status"),
		in(first.name, "synchub", "describe", "placement", placement),
		in("inventory", "synchub", "explain", d.clusters[0].name, "deployments", first.namespaceOnClusters()+"/"+web, "--hosting-context", "hosting"),
	} {
		if err := d.show(ctx, question); err != nil {
			return err
		}
		d.screen.Println("")
	}
	return nil
}

// summary lists commands to look around with.
func (d *demo) summary() string {
	var text strings.Builder
	section := func(title string, commands ...command) {
		fmt.Fprintf(&text, "\n%s\n", title)
		for _, one := range commands {
			fmt.Fprintf(&text, "  %s\n", one)
		}
	}
	team, cluster := d.teams[0], d.clusters[len(d.clusters)-1]
	there := []string{"deployment", web, "--namespace", team.namespaceOnClusters()}

	fmt.Fprintf(&text, "\nLook around in another terminal. First, in %s:\n  . %s/%s\n", d.state.root, stateDir, environmentFile)
	section("What a team wrote, and where it runs:",
		in(team.name, "get", "deployments,edgeplacements,singleplacementslices,placementrevisions", "--all-namespaces"),
		in(cluster.name, "get", "deployments,pods", "--all-namespaces"))
	section("Change it in the workspace, or break it on a cluster, and see the hub follow:",
		in(team.name, "scale", "deployment", web, "--namespace", namespace, "--replicas", "3"),
		in(cluster.name, append([]string{"delete"}, there...)...),
		in(cluster.name, append([]string{"get"}, there...)...))
	section("What the operator published and registered:",
		in("hosting", "get", "publishedresources"),
		in("inventory", "get", "synctargets,locations", "--show-labels"),
		in(mailboxOf(cluster.name), "get", "syncerconfigs"))
	section("What is wrong, should something be:",
		in("inventory", "synchub", "check", "--hosting-context", "hosting", "--hub-namespace", "default"))
	fmt.Fprintf(&text, "\nThe hub's log and metrics:\n  %s\n  http://%s/metrics\n", d.state.relative(d.hub.LogFile()), d.hub.metrics)
	text.WriteString("\nGo on with docs/getting-started.md, which sets all of this up by hand, and with docs/placement.md.\n")
	text.WriteString("\nEverything runs until Ctrl-C; a second one ends it at once.")
	return text.String()
}
