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
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	hubconfig "github.com/synchub-dev/synchub/cmd/synchub/config"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// runVariable is an environment variable that makes the test binary run the hub.
const runVariable = "SYNCHUB_TEST_PLAY"

// runLimit bounds a command that must fail.
const runLimit = 2 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(runVariable) != "" {
		main()
		os.Exit(0)
	}
	suite.Main(m)
}

// outcome is the output of a command, and its exit status.
type outcome struct {
	code           int
	stdout, stderr string
}

// synchub runs the program outside any cluster.
func synchub(t *testing.T, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runLimit)
	defer cancel()
	command := exec.CommandContext(ctx, os.Args[0], args...) //nolint:gosec // the test binary itself
	// With the race detector, a program would sleep for a second at exit.
	command.Env = append(os.Environ(), runVariable+"=1", "GORACE=atexit_sleep_ms=0", "KUBERNETES_SERVICE_HOST=", "KUBERNETES_SERVICE_PORT=", "KUBECONFIG=", "COLUMNS=", "HOME="+t.TempDir())
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("synchub %s: %v, %v\n%s", strings.Join(args, " "), err, ctx.Err(), stderr.String())
	}
	return outcome{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// expectError fails unless the program ended with status 1 and one sentence that contains the words.
func expectError(t *testing.T, got outcome, words ...string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(got.code).To(Equal(1), got.stderr)
	g.Expect(strings.Count(got.stderr, "\n")).To(Equal(1), got.stderr)
	g.Expect(got.stderr).To(HavePrefix("synchub: "))
	g.Expect(got.stderr).NotTo(ContainSubstring("Usage:"))
	for _, word := range words {
		g.Expect(got.stderr).To(ContainSubstring(word))
	}
}

const goodKubeconfig = `
apiVersion: v1
kind: Config
current-context: here
clusters: [{name: this, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: here, context: {cluster: this, user: me}}]
users: [{name: me, user: {token: 5ecret}}]
`

const hubConfiguration = "apiVersion: config.synchub.dev/v1alpha1\nkind: HubConfiguration\n"

// file writes a file and returns its path.
func file(t *testing.T, content string) string {
	t.Helper()
	written, err := os.CreateTemp(t.TempDir(), "kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	_, err = written.WriteString(content)
	if err = errors.Join(err, written.Close()); err != nil {
		t.Fatal(err)
	}
	return written.Name()
}

func TestWrongUse(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	good, malformed := file(t, goodKubeconfig), file(t, "users: [{name: me, user: {token: [5ecret]}}]")
	insecure := file(t, strings.Replace(goodKubeconfig, "https:", "http:", 1))
	// run and init return valid arguments, followed by the given ones.
	run := func(args ...string) []string { return append([]string{"run", "--kcp-kubeconfig", good}, args...) }
	initialize := func(args ...string) []string {
		return append([]string{"init", "--kcp-kubeconfig", good, "--hub-user", "hub"}, args...)
	}
	const positive = "must be more than 0"
	for name, tt := range map[string]struct {
		args  []string
		words []string
	}{
		"no such command":            {[]string{"rum"}, []string{`"rum"`, "`synchub --help`"}},
		"no such flag":               {[]string{"--verbose"}, []string{"--verbose", "`synchub --help`"}},
		"no such flag of run":        {run("--verbose"), []string{"--verbose", "`synchub run --help`"}},
		"no such flag of init":       {initialize("--verbose"), []string{"--verbose", "`synchub init --help`"}},
		"an argument for run":        {run("now"), []string{`"now"`, "`synchub run --help`"}},
		"an argument for init":       {initialize("now"), []string{`"now"`, "`synchub init --help`"}},
		"an argument for version":    {[]string{"version", "1"}, []string{`"1"`, "`synchub version --help`"}},
		"a flag without its value":   {run("--namespace"), []string{"--namespace", "`synchub run --help`"}},
		"words for a number":         {run("--kcp-qps", "many"), []string{"--kcp-qps", "many", "`synchub run --help`"}},
		"a number for a duration":    {run("--leader-election-retry-period", "2"), []string{"--leader-election-retry-period", "`synchub run --help`"}},
		"no kubeconfig":              {[]string{"run"}, []string{"--kcp-kubeconfig: Required value: the path of the kubeconfig of the hub's kcp user"}},
		"no workspace":               {run("--provider-workspace", ""), []string{"--provider-workspace: Required value: the path of the provider workspace"}},
		"no kcp rate":                {run("--kcp-qps", "0"), []string{"--kcp-qps: Invalid value: 0: " + positive}},
		"a rate that is no number":   {run("--kcp-qps", "NaN"), []string{"--kcp-qps: Invalid value: NaN: " + positive}},
		"a negative kcp burst":       {run("--kcp-burst", "-1"), []string{"--kcp-burst: Invalid value: -1: " + positive}},
		"a negative target rate":     {run("--target-qps", "-1"), []string{"--target-qps: Invalid value: -1: " + positive}},
		"a rate of targets, no less": {run("--target-qps", "nan"), []string{"--target-qps: Invalid value: NaN: " + positive}},
		"no target burst":            {run("--target-burst", "0"), []string{"--target-burst: Invalid value: 0: " + positive}},
		"no object of a mailbox":     {run("--mailbox-max-objects", "0"), []string{"--mailbox-max-objects: Invalid value: 0: " + positive}},
		"no byte of a mailbox":       {run("--mailbox-max-bytes", "-1"), []string{"--mailbox-max-bytes: Invalid value: -1: " + positive}},
		"no time to settle":          {run("--binding-settle-period", "0s"), []string{`--binding-settle-period: Invalid value: "0s": must be 1s or more`}},
		"no mailbox at all":          {run("--inventory-max-mailboxes", "0"), []string{"--inventory-max-mailboxes: Invalid value: 0: " + positive}},
		"no upsynced object":         {run("--max-upsynced-objects", "0"), []string{"--max-upsynced-objects: Invalid value: 0: " + positive}},
		"no object to place":         {run("--max-placed-objects", "0"), []string{"--max-placed-objects: Invalid value: 0: " + positive}},
		"less than no grace":         {run("--withdrawal-grace", "-1s"), []string{`--withdrawal-grace: Invalid value: "-1s": must not be negative; 0s means no wait`}},
		"less than no mailboxes":     {run("--mailboxes-max-bytes", "-1"), []string{"--mailboxes-max-bytes: Invalid value: -1: must not be negative"}},
		"less than no targets":       {run("--targets-max-bytes", "-1"), []string{"--targets-max-bytes: Invalid value: -1: must not be negative"}},
		"less than no memory":        {run("--memory-limit", "-1"), []string{"--memory-limit: Invalid value: -1: must not be negative; 0 means no limit"}},
		"a lease that ends at once":  {run("--leader-election-lease-duration", "10s"), []string{`--leader-election-lease-duration: Invalid value: "10s": must be longer than the renew deadline, 10s`}},
		"a late renewal":             {run("--leader-election-renew-deadline", "15s"), []string{"--leader-election-lease-duration: Invalid value", "the renew deadline, 15s"}},
		"a late try":                 {run("--leader-election-retry-period", "10s"), []string{"--leader-election-renew-deadline: Invalid value", "must be longer than 12s, which is the retry period times 1.2"}},
		"a try a little late":        {run("--leader-election-retry-period", "9s"), []string{"--leader-election-renew-deadline: Invalid value", "must be longer than 10.8s"}},
		"no time between tries":      {run("--leader-election-retry-period", "0s"), []string{`--leader-election-retry-period: Invalid value: "0s": must be more than 0s`}},
		"less than no time":          {run("--leader-election-retry-period", "-1s"), []string{`--leader-election-retry-period: Invalid value: "-1s": must be more than 0s`}},
		"a pattern for namespaces":   {run("--protected-namespaces", "kube-*,*-system"), []string{`--protected-namespaces: Invalid value: "*-system": `, "is neither the name of a namespace"}},
		"an address for a network":   {run("--denied-networks", "10.0.0.0/8,10.0.0.1"), []string{`--denied-networks: Invalid value: "10.0.0.1": `, "is not a valid CIDR"}},
		"a certificate without TLS":  {run("--metrics-cert-dir", filepath.Dir(missing)), []string{"--metrics-secure: Required value", "--metrics-cert-dir: Invalid value"}},
		"TLS without a certificate":  {run("--metrics-secure", "--metrics-cert-dir", filepath.Dir(missing)), []string{"--metrics-cert-dir: Invalid value", "must be a directory with a certificate in tls.crt and its key in tls.key"}},
		"profiles at all addresses":  {run("--profiling=0.0.0.0:6060"), []string{`--profiling: Invalid value: "0.0.0.0:6060": must be a loopback address`}},
		"profiles at a name":         {run("--profiling=localhost:6060"), []string{`--profiling: Invalid value: "localhost:6060": must be a loopback address`}},
		"an unknown log level":       {run("--log-level", "loud"), []string{`--log-level: Unsupported value: "loud": supported values: "error", "info", "debug", "trace"`}},
		"an unknown log format":      {run("--log-format", "xml"), []string{`--log-format: Unsupported value: "xml": supported values: "json", "console"`}},
		"a collector without scheme": {run("--tracing-endpoint", "collector:4317"), []string{`--tracing-endpoint: Invalid value: "collector:4317": must be a URL such as http://collector.observability:4317`}},
		"less than no traces":        {run("--tracing-sampling-rate-per-million", "-1"), []string{"--tracing-sampling-rate-per-million: Invalid value: -1: must be from 0 to 1000000"}},
		"more than all traces":       {run("--tracing-sampling-rate-per-million", "1000001"), []string{"--tracing-sampling-rate-per-million: Invalid value: 1000001: must be from 0 to 1000000"}},
		"a kubeconfig that is away":  {run("--kcp-kubeconfig", missing), []string{"cannot read the kcp kubeconfig", missing}},
		"a name with an escape":      {run("--kcp-kubeconfig", missing+"\x1b[2J"), []string{"cannot read the kcp kubeconfig", missing + `\x1b[2J`}},
		"a kubeconfig of directory":  {run("--kcp-kubeconfig", filepath.Dir(missing)), []string{"cannot read the kcp kubeconfig"}},
		"a malformed kubeconfig":     {run("--kcp-kubeconfig", malformed), []string{"cannot use the kcp kubeconfig " + malformed}},
		"a kubeconfig for http":      {run("--kcp-kubeconfig", insecure), []string{"cannot use the kcp kubeconfig " + insecure, "https"}},
		"no hosting cluster":         {run(), []string{"set --hosting-kubeconfig, since this does not run in a cluster"}},
		"a hosting one that is away": {run("--hosting-kubeconfig", missing), []string{"cannot use the hosting kubeconfig " + missing}},
		"a malformed hosting one":    {run("--hosting-kubeconfig", malformed), []string{"cannot use the hosting kubeconfig " + malformed}},
		"a config that is away":      {run("--config", missing), []string{"cannot read the configuration", missing}},
		"a config of another kind":   {run("--config", good), []string{"cannot use the configuration " + good, "kind: HubConfiguration"}},
		"an unknown field":           {run("--config", file(t, hubConfiguration+"kcp: {qqs: 1}")), []string{"cannot use the configuration", "kcp.qqs: Forbidden: there is no such field"}},
		"an invalid field":           {run("--config", file(t, hubConfiguration+"kcp: {qps: -1, kubeconfig: x}")), []string{": kcp.qps: Invalid value: -1: must be more than 0"}},
		"an invalid flag over it":    {run("--config", file(t, hubConfiguration+"kcp: {qps: 1}"), "--kcp-qps=-2"), []string{"--kcp-qps: Invalid value: -2: must be more than 0"}},
		"a config and a missing one": {run("--config", file(t, hubConfiguration+"hosting: {kubeconfig: "+missing+"}")), []string{"cannot use the hosting kubeconfig " + missing}},
		"no kubeconfig for init":     {[]string{"init", "--hub-user", "hub"}, []string{"set --kcp-kubeconfig to the kubeconfig of an administrator of the provider workspace"}},
		"no workspace for init":      {initialize("--provider-workspace", ""), []string{"set --provider-workspace to the path of the provider workspace"}},
		"no user for init":           {initialize("--hub-user", ""), []string{"set --hub-user to the name of the hub's kcp user"}},
		"init and no such file":      {initialize("--kcp-kubeconfig", missing), []string{"cannot read the kcp kubeconfig", missing}},
		"no API to wait for":         {[]string{"wait-for-api"}, []string{"give one API", "synchub wait-for-api --help"}},
		"an API and no cluster":      {[]string{"wait-for-api", "publishedresources.synchub.dev"}, []string{"set --hosting-kubeconfig"}},
		"init without a kcp":         {initialize(), []string{"cannot", "root", "127.0.0.1:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := synchub(t, tt.args...)
			expectError(t, got, tt.words...)
			g := NewWithT(t)
			g.Expect(got.stdout).To(BeEmpty())
			g.Expect(got.stderr).NotTo(ContainSubstring("5ecret"))
		})
	}
}

func TestHelpListsEachFlag(t *testing.T) {
	g := NewWithT(t)
	for _, args := range [][]string{nil, {"--help"}, {"help"}, {"-h"}} {
		got := synchub(t, args...)
		g.Expect(got.code).To(BeZero())
		g.Expect(got.stderr).To(BeEmpty())
		for _, command := range newCommand().Commands() {
			g.Expect(got.stdout).To(MatchRegexp(`(?m)^  ` + command.Name() + ` +` + command.Short + `$`))
		}
	}

	// Defaults that the documentation promises.
	for name, want := range map[string]struct {
		command  *cobra.Command
		defaults map[string]string
	}{
		"run": {newRunCommand(), map[string]string{
			"config": "", "kcp-kubeconfig": "", "hosting-kubeconfig": "", "provider-workspace": "root:synchub", "namespace": "",
			"coordination": "leader", "leader-elect": "true", "leader-election-namespace": "",
			"leader-election-lease-duration": "15s", "leader-election-renew-deadline": "10s", "leader-election-retry-period": "2s", "standby": "warm",
			"metrics-bind-address": ":8080", "metrics-secure": "", "metrics-cert-dir": "", "metrics-per-resource": "true", "health-probe-bind-address": ":8081",
			"kcp-qps": "2000", "kcp-burst": "4000", "target-qps": "1000", "target-burst": "2000",
			"target-cache-objects": "100000", "target-cache-bytes": "134217728", "targets-max-bytes": "", "memory-limit": "",
			"mailbox-max-objects": "20000", "mailbox-max-bytes": "67108864", "mailboxes-max-bytes": "", "inventory-max-mailboxes": "1000", "max-placed-objects": "100000", "max-upsynced-objects": "5000", "withdrawal-grace": "1m0s", "binding-settle-period": "10s", "mass-deletion-delay": "10s", "denied-networks": "", "profiling": "",
			"tunnel-bind-address": "0", "tunnel-cert-dir": "", "tunnel-url": "",
			"protected-namespaces": "[kube-*,kcp-system,synchub,synchub-*]",
			"log-level":            "info", "log-format": "json", "tracing-endpoint": "", "tracing-sampling-rate-per-million": "10000",
		}},
		"init": {newInitCommand(), map[string]string{
			"kcp-kubeconfig": "", "provider-workspace": "root:synchub", "hub-user": "", "inventory-group": "", "workload-group": "", "dry-run": "", "output": "",
		}},
	} {
		got := synchub(t, name, "--help")
		g.Expect(got.code).To(BeZero())
		g.Expect(got.stderr).To(BeEmpty())
		g.Expect(got.stdout).To(ContainSubstring("synchub " + name + " [flags]"))
		var flags []string
		want.command.Flags().VisitAll(func(flag *pflag.Flag) { flags = append(flags, flag.Name) })
		for flag, value := range want.defaults {
			g.Expect(flags).To(ContainElement(flag))
			line := lineWith(got.stdout, "--"+flag+" ")
			switch value {
			case "":
				g.Expect(line).NotTo(BeEmpty(), flag)
			default:
				g.Expect(strings.ReplaceAll(line, `"`, "")).To(HaveSuffix("(default " + value + ")"))
			}
		}
		g.Expect(flags).To(HaveLen(len(want.defaults)), "each flag is listed here")
	}
}

func TestHelpFitsOnATerminal(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	for _, name := range []string{"run", "init"} {
		help, err := execute(t, name, "--help")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(help) {
			if length := len(strings.TrimRight(line, "\n")); length > 80 {
				t.Errorf("%s: %d characters in %s", name, length, line)
			}
		}
		if lines := strings.Count(help, "\n"); !strings.Contains(help, "\nGeneral flags:\n") || !strings.Contains(help, "\nGlobal flags:\n") || lines < 30 {
			t.Errorf("%s: the flags are in no groups:\n%s", name, help)
		}
	}
}

func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// completeRun returns the options of `synchub run` for a command line with a kubeconfig.
func completeRun(t *testing.T, args ...string) *runOptions {
	t.Helper()
	options, flags := &runOptions{settings: hubconfig.Defaults()}, pflag.NewFlagSet("run", pflag.ContinueOnError)
	for _, group := range options.flags().FlagSets {
		flags.AddFlagSet(group)
	}
	if err := flags.Parse(append([]string{"--kcp-kubeconfig", "x"}, args...)); err != nil {
		t.Fatal(err)
	}
	if err := options.complete(flags); err != nil {
		t.Fatal(err)
	}
	return options
}

// The hub's own namespace is always protected, unless it is the namespace default.
func TestTheHubsOwnNamespaceIsProtected(t *testing.T) {
	for namespace, want := range map[string]bool{"hub-of-ours": true, "default": false} {
		options := completeRun(t, "--namespace", namespace, "--protected-namespaces", "kube-*")
		protected := policy.NamespacePatterns(options.settings.Targets.ProtectedNamespaces)
		if got := protected.Match(namespace); got != want || !protected.Match("kube-system") || protected.Match("shop") {
			t.Errorf("%s: %v, of %v", namespace, got, protected)
		}
	}
}
