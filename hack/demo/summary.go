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
	"path/filepath"
	"slices"
	"strings"
)

// question is a command of the plugin that shows the state, for one of the kubeconfigs.
type question struct {
	title, kubeconfig string
	args              []string
}

// questions are what operators and teams ask first.
func (d *demo) questions() []question {
	first := d.targets[0]
	return []question{
		{"The fleet:", "inventory", []string{"status"}},
		{"What the team placed, and where:", "shop", []string{"describe", "placement", placement}},
		{
			fmt.Sprintf("Why an object is on %s:", first.name), "inventory",
			[]string{"explain", first.name, "deployments", common.namespace + "/" + common.deployment, "--hosting-kubeconfig", d.state.kubeconfig("hosting")},
		},
	}
}

// ask runs the questions, and prints them with the answers.
func (d *demo) ask(ctx context.Context) error {
	ctx, cancel := limited(ctx, stepLimit)
	defer cancel()
	for _, one := range d.questions() {
		answer, err := d.pluginIn(ctx, one.kubeconfig, one.args...)
		if err != nil {
			return fmt.Errorf("ask the plugin for %s: %w", one.args[0], err)
		}
		d.screen.Println(fmt.Sprintf("\n%s\n  %s\n\n%s", one.title, d.pluginCommand(one), strings.TrimSpace(answer)))
	}
	return nil
}

// pluginCommand returns a question as a command to paste.
func (d *demo) pluginCommand(of question) string {
	args := slices.Clone(of.args)
	for i, arg := range args {
		if filepath.IsAbs(arg) {
			args[i] = d.state.relative(arg)
		}
	}
	return fmt.Sprintf("bin/kubectl-synchub --kubeconfig %s %s", d.state.relative(d.state.kubeconfig(of.kubeconfig)), strings.Join(args, " "))
}

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
	kubectl("shop", "get edgeplacements,singleplacementslices,placementrevisions")
	kubectl("shop", fmt.Sprintf("scale deployment %s -n %s --replicas 3", web, shopNamespace))
	section("What is wrong, should something be:")
	fmt.Fprintf(&text, "  %s\n", d.pluginCommand(question{"", "inventory", []string{"check", "--hosting-kubeconfig", d.state.kubeconfig("hosting"), "--hub-namespace", "default"}}))
	section("The hub's own account:")
	fmt.Fprintf(&text, "  %s\n", d.state.relative(d.hub.LogFile()))
	fmt.Fprintf(&text, "  http://%s/metrics\n", d.hub.metrics)
	text.WriteString("\nGo on with docs/getting-started.md, which sets all of this up by hand, and with docs/placement.md.\n")
	text.WriteString("\nEverything runs until Ctrl-C; a second one ends it at once.")
	return text.String()
}
