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

package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	cliflag "k8s.io/component-base/cli/flag"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/apis/config/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
)

// newFlags returns the flags for settings.
func newFlags(settings *v1alpha1.HubConfiguration) *pflag.FlagSet {
	groups, flags := &cliflag.NamedFlagSets{}, pflag.NewFlagSet("run", pflag.ContinueOnError)
	AddFlags(groups, settings)
	for _, group := range groups.FlagSets {
		flags.AddFlagSet(group)
	}
	return flags
}

// writeFile writes a HubConfiguration with the given fields, and returns its path.
func writeFile(t *testing.T, fields string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hub.yaml")
	if err := os.WriteFile(path, []byte("apiVersion: config.synchub.dev/v1alpha1\nkind: HubConfiguration\n"+fields), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// leaves returns the fields of settings by their paths, without apiVersion and kind.
func leaves(t *testing.T, settings *v1alpha1.HubConfiguration) map[string]any {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(settings)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]any{}
	var collect func(prefix string, fields map[string]any)
	collect = func(prefix string, fields map[string]any) {
		for name, value := range fields {
			if nested, ok := value.(map[string]any); ok {
				collect(prefix+name+".", nested)
			} else {
				found[prefix+name] = value
			}
		}
	}
	collect("", content)
	delete(found, "apiVersion")
	delete(found, "kind")
	return found
}

func TestEachFlagHasOneField(t *testing.T) {
	g := NewWithT(t)
	settings := Defaults()
	var names []string
	newFlags(settings).VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	g.Expect(slices.Sorted(maps.Keys(fieldOf))).To(Equal(slices.Sorted(slices.Values(names))))
	g.Expect(slices.Sorted(maps.Values(fieldOf))).To(Equal(slices.Sorted(maps.Keys(leaves(t, settings)))))
}

// otherValue returns a value that a flag does not have by default.
func otherValue(t *testing.T, flag *pflag.Flag) string {
	t.Helper()
	switch kind := flag.Value.Type(); kind {
	case "string":
		return "other"
	case "bool":
		return fmt.Sprint(flag.DefValue != "true")
	case "int", "int64", "float32":
		return "77"
	case "duration":
		return "77s"
	case "stringSlice":
		return "one,two"
	default:
		t.Fatalf("no value of type %s is known here", kind)
		return ""
	}
}

// A flag sets the field to which fieldOf maps it, and no other field. The same value in a file has the same effect.
func TestAFlagAndItsFieldAreTheSame(t *testing.T) {
	for name, path := range fieldOf {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			byFlag := Defaults()
			flags := newFlags(byFlag)
			g.Expect(flags.Set(name, otherValue(t, flags.Lookup(name)))).To(Succeed())
			after := leaves(t, byFlag)
			changed := map[string]any{}
			for field, before := range leaves(t, Defaults()) {
				if fmt.Sprint(before) != fmt.Sprint(after[field]) {
					changed[field] = after[field]
				}
			}
			g.Expect(changed).To(HaveLen(1))
			g.Expect(changed).To(HaveKey(path))

			fields := changed[path]
			for _, part := range slices.Backward(strings.Split(path, ".")) {
				fields = map[string]any{part: fields}
			}
			content, err := yaml.Marshal(fields)
			g.Expect(err).NotTo(HaveOccurred())
			file := writeFile(t, string(content))
			byFile, err := Load(file)
			g.Expect(err).NotTo(HaveOccurred())
			for _, relative := range []*string{&byFile.KCP.Kubeconfig, &byFile.Hosting.Kubeconfig, &byFile.Metrics.CertDir, &byFile.Tunnel.CertDir} {
				*relative = strings.TrimPrefix(*relative, filepath.Dir(file)+string(filepath.Separator))
			}
			g.Expect(byFile).To(Equal(byFlag))
		})
	}
}

func TestGivenFlagsWinOverTheFile(t *testing.T) {
	g := NewWithT(t)
	file, err := Load(writeFile(t, `
kcp: {qps: 5, burst: 6}
leaderElection: {leaderElect: false, leaseDuration: 1m}
targets: {deniedNetworks: [10.0.0.0/8], protectedNamespaces: [from-file]}
log: {level: debug}
`))
	g.Expect(err).NotTo(HaveOccurred())
	settings := Defaults()
	flags := newFlags(settings)
	// One flag repeats its default: it still wins over the file.
	g.Expect(flags.Parse([]string{"--kcp-qps=7.5", "--leader-elect", "--denied-networks=192.0.2.0/24", "--denied-networks=198.51.100.0/24", "--profiling"})).To(Succeed())
	g.Expect(Override(settings, file, flags)).To(Succeed())

	want := Defaults()
	want.KCP.QPS, want.KCP.Burst = 7.5, 6
	want.LeaderElection.LeaseDuration.Duration = time.Minute
	want.Targets.DeniedNetworks, want.Targets.ProtectedNamespaces = []string{"192.0.2.0/24", "198.51.100.0/24"}, []string{"from-file"}
	want.Profiling.BindAddress = "127.0.0.1:6060"
	want.Log.Level = "debug"
	g.Expect(settings).To(Equal(want))
}

// Every later hub and test uses the same defaults, so a file must not change them.
func TestAFileDoesNotChangeTheDefaults(t *testing.T) {
	before := slices.Clone(policy.DefaultProtectedNamespaces)
	if _, err := Load(writeFile(t, "targets: {protectedNamespaces: [mine, and, these, as, well]}")); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(policy.DefaultProtectedNamespaces, before) {
		t.Errorf("got %v", policy.DefaultProtectedNamespaces)
	}
}

func TestRelativePathsBeginAtTheFile(t *testing.T) {
	file := writeFile(t, "kcp: {kubeconfig: kcp.kubeconfig}\nhosting: {kubeconfig: /etc/hosting}\n")
	settings, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(filepath.Dir(file), "kcp.kubeconfig"); settings.KCP.Kubeconfig != want || settings.Hosting.Kubeconfig != "/etc/hosting" || settings.Metrics.CertDir != "" {
		t.Errorf("got %q, %q and %q", settings.KCP.Kubeconfig, settings.Hosting.Kubeconfig, settings.Metrics.CertDir)
	}
}

func TestLoadNamesWrongFields(t *testing.T) {
	for name, test := range map[string]struct{ fields, want string }{
		"unknown":             {"kcp: {qqs: 5}", "kcp.qqs: Forbidden: there is no such field"},
		"unknown and empty":   {"targets: {spare: {}}", "targets.spare: Forbidden: there is no such field"},
		"another case":        {"Kcp: {qps: 5}", "Kcp.qps: Forbidden: there is no such field"},
		"repeated":            {"kcp:\n  qps: 5\n  burst: 6\n  qps: 7\n", `line 6: key "qps" already set in map`},
		"a word for a number": {"kcp: {qps: many}", `kcp.qps: Invalid value: "many": must be a number`},
		"half an object":      {"mailboxes: {maxObjects: 1.5}", "mailboxes.maxObjects: Invalid value: 1.5: must be a whole number"},
		"more than fits":      {"placement: {maxObjects: 1e30}", "placement.maxObjects: Invalid value: 1e+30: must be a whole number"},
		"a unit":              {"memoryLimit: 1Gi", `memoryLimit: Invalid value: "1Gi": must be a whole number`},
		"a word for a choice": {"metrics: {secure: perhaps}", `metrics.secure: Invalid value: "perhaps": must be true or false`},
		"a number for a name": {"namespace: 5", "namespace: Invalid value: 5: must be a string"},
		"one of a list":       {"targets: {deniedNetworks: 10.0.0.0/8}", `targets.deniedNetworks: Invalid value: "10.0.0.0/8": must be a list`},
		"a list of numbers":   {"targets: {deniedNetworks: [5]}", `targets.deniedNetworks: Invalid value: [5]: must be a string`},
		"fields of a number":  {"kcp: {qps: {a: 1}}", "kcp.qps.a: Invalid value: 1: must be a number"},
		"a word for fields":   {"kcp: kubeconfig", `kcp: Invalid value: "kubeconfig": must have fields`},
		"no duration":         {"leaderElection: {retryPeriod: soon}", `leaderElection.retryPeriod: Invalid value: "soon": invalid duration "soon"`},
		"no unit of time":     {"mailboxes: {massDeletionDelay: '10'}", `mailboxes.massDeletionDelay: Invalid value: "10": missing unit in duration "10"`},
		"several":             {"log: {level: 1}\nkcp: {qqs: 5, burst: x}", `kcp.burst: Invalid value: "x": must be a whole number; kcp.qqs: Forbidden: there is no such field; log.level: Invalid value: 1: must be a string`},
		"another document":    {"---\nkcp: {qps: 5}\n", "it must be one document, and there are more"},
		"no YAML":             {"kcp: [", "yaml: "},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			file := writeFile(t, test.fields)
			_, err := Load(file)
			g.Expect(err).To(MatchError(HavePrefix("cannot use the configuration " + file + ": ")))
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			g.Expect(err.Error()).NotTo(ContainSubstring("\n"))
		})
	}
}

func TestLoadRefusesOtherFiles(t *testing.T) {
	g := NewWithT(t)
	for _, content := range []string{
		"", "kcp: {qps: 5}", "[]", "5",
		"apiVersion: config.synchub.dev/v1\nkind: HubConfiguration", "apiVersion: config.synchub.dev/v1alpha1\nkind: Config", "kind: HubConfiguration",
	} {
		file := filepath.Join(t.TempDir(), "hub.yaml")
		g.Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
		_, err := Load(file)
		g.Expect(err).To(MatchError(Or(ContainSubstring("it must have apiVersion: config.synchub.dev/v1alpha1 and kind: HubConfiguration"), ContainSubstring("it must be a HubConfiguration"))), content)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	_, err := Load(missing)
	g.Expect(err).To(MatchError(And(ContainSubstring("cannot read the configuration"), ContainSubstring(missing))))
}

// Fields that the file leaves out, or has without a value, have their defaults.
func TestAnEmptyFileMeansTheDefaults(t *testing.T) {
	g := NewWithT(t)
	for _, fields := range []string{"", "kcp:\nleaderElection: {}\ntargets: {qps: null}\n", "---\n"} {
		settings, err := Load(writeFile(t, fields))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(settings).To(Equal(Defaults()), fields)
	}
}

// The examples in the documentation are valid.
func TestDocumentedConfiguration(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("../../../docs/operations.md")
	g.Expect(err).NotTo(HaveOccurred())
	_, after, found := strings.Cut(string(page), "```yaml\napiVersion: config.synchub.dev/v1alpha1\n")
	g.Expect(found).To(BeTrue(), "the page shows a configuration")
	example, _, _ := strings.Cut(after, "```")
	settings, err := decode([]byte("apiVersion: config.synchub.dev/v1alpha1\n" + example))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Validate(settings)).To(BeEmpty())
	g.Expect(settings).NotTo(Equal(Defaults()))
}
