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

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

var (
	roleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	// registers are the objects of a registration, as kubectl prints them.
	registers = []string{"synctarget.edge.kubestellar.io", "namespace/synchub", "serviceaccount", "clusterrole.", "clusterrolebinding.", "role.", "rolebinding.", "secret"}
)

var _ = Describe("the kubectl plugin", func() {
	It("registers a cluster with rights for the published APIs, shows its state, extends the rights, and removes it", SpecPriority(1), func(ctx SpecContext) {
		const ns, group = "registered", "registered.example.dev"
		inventory := newInventory(ctx, ns)
		kubectl := userOf(ctx, inventory)
		admin := []string{"--target-kubeconfig", clusters["florin"].Kubeconfig}
		register := append([]string{"synchub", "register", ns}, admin...)

		By("showing the objects that it would create")
		shown := kubectl.succeeds(ctx, append(register, "--dry-run=client", "-o", "yaml")...)
		for _, part := range []string{"kind: SyncTarget", "kind: ServiceAccount", "kind: ClusterRole\n", "- configmaps", "name: synchub-" + ns + "-"} {
			Expect(shown.out).To(ContainSubstring(part))
		}
		Expect(framework.List(ctx, inventory.Config, syncTargets, "", "")).To(BeEmpty())
		Expect(madeFor(ctx, "florin", ns)).To(BeEmpty())

		By("registering, with a line for each step")
		done := kubectl.onTerminal(ctx, append(register, "--labels", "env=test")...)
		for _, step := range []string{"MailboxReady: ", "HeartbeatHealthy: ", "SyncerAuthorized: ", "SyncerReady: "} {
			Expect(done.errs).To(MatchRegexp("(?m)^" + step))
		}
		Expect(done.out).To(HaveSuffix("synctarget.edge.kubestellar.io/" + ns + " ready\n"))
		kubectl.succeeds(ctx, "wait", "--for=condition=Ready", "synctarget/"+ns, "--timeout=20s")
		identity := madeFor(ctx, "florin", ns)
		Expect(identity).To(HaveLen(5))

		By("keeping the identity when it is repeated")
		again := kubectl.succeeds(ctx, register...)
		Expect(again.errs).To(ContainSubstring("MailboxReady: "), "without a terminal too")
		for _, made := range registers {
			Expect(again.out).To(MatchRegexp("(?m)^" + made + ".* unchanged$"))
		}
		Expect(madeFor(ctx, "florin", ns)).To(Equal(identity))

		By("placing an object with these rights")
		mailbox := mailboxOf(ctx, inventory, ns)
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "x"), everythingIn(ns)))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "settings")

		By("showing its state")
		Expect(kubectl.succeeds(ctx, "synchub", "get", "targets").out).To(MatchRegexp(`(?m)^NAME +READY .*\n%s +True .* v1\.`, ns))
		Expect(kubectl.succeeds(ctx, "synchub", "get", "targets", "-o", "wide").out).To(ContainSubstring("MAILBOX"))
		Expect(kubectl.succeeds(ctx, "synchub", "get", "targets", "-l", "env=test", "-o", "name").out).To(Equal("synctarget.edge.kubestellar.io/" + ns + "\n"))
		Expect(kubectl.succeeds(ctx, "synchub", "get", "targets", "-o", "json").out).To(ContainSubstring(`"clusterID": "`))
		described := kubectl.succeeds(ctx, "synchub", "describe", "target", ns).out
		Expect(described).To(MatchRegexp(`(?m)^Token: +ends in `))
		Expect(described).To(MatchRegexp(`(?m)^ +SyncerAuthorized +True `))
		Expect(described).To(MatchRegexp(`(?m)^ +configmaps +v1 +Accepted`))
		Expect(kubectl.succeeds(ctx, "synchub", "status").out).To(ContainSubstring("1 is well"))

		By("listing missing rights when more is published, and extending them")
		widgets := custom(group, "v1", "widgets", "Widget")
		define(ctx, target("hosting"), widgets)
		define(ctx, target("florin"), widgets)
		publishAs(ctx, ns, "\n  resource: {group: "+group+", resource: widgets}")
		eventuallyPublished(ctx, ns)
		apply(ctx, mailbox, documents(widgets.object(ns, "first", "spec: {}"), strings.ReplaceAll(selecting(ns, widgets.GroupVersionResource), "name: "+ns, "name: more")))
		Eventually(message).WithContext(ctx).WithArguments(inventory.Config, syncTargets, ns, "SyncerAuthorized").
			Should(ContainSubstring("widgets." + group + " (create, delete, get, list, patch, watch)"))
		Expect(kubectl.succeeds(ctx, "synchub", "status").out).To(ContainSubstring("widgets." + group))
		hosted := append(register, "--hosting-kubeconfig", clusters["hosting"].Kubeconfig)
		Expect(kubectl.runs(ctx, hosted...).errs).To(And(MatchRegexp(`would grow by: .*widgets\.registered\.example\.dev \(create, `), HaveSuffix("error: nothing was changed: give --yes to confirm\n")))
		Expect(kubectl.onTerminalSaying(ctx, "yes\n", hosted...).out).To(MatchRegexp(`(?m)^clusterrole\..* configured$`))
		Expect(framework.Condition(ctx, inventory.Config, syncTargets, "", ns, "SyncerAuthorized")).To(Equal("True"))
		eventuallyExists(ctx, target("florin"), widgets.GroupVersionResource, ns, "first")

		By("leaving only the listed objects on the cluster")
		patch(ctx, inventory.Config, syncTargets, "", ns, `{"spec": {"deletionPolicy": "Delete"}}`)
		removed := kubectl.succeeds(ctx, append([]string{"synchub", "unregister", ns, "--yes"}, admin...)...)
		Expect(removed.out).To(ContainSubstring("synctarget.edge.kubestellar.io/" + ns + " deleted\n"))
		Expect(removed.errs).To(And(ContainSubstring("the hub deletes the copies from the cluster"), ContainSubstring("deletionPolicy is Delete; --orphan keeps them.\n"), HaveSuffix("\nnamespaces "+ns+" stays: Ensured\n")))
		Expect(madeFor(ctx, "florin", ns)).To(BeEmpty())
		Expect(framework.Exists(ctx, target("florin"), configMaps, ns, "settings")).To(BeFalse())
		Expect(framework.Exists(ctx, target("florin"), widgets.GroupVersionResource, ns, "first")).To(BeFalse())
		Expect(framework.Exists(ctx, inventory.Config, secrets, "default", ns+"-kubeconfig")).To(BeFalse())
		Expect(kubectl.succeeds(ctx, "synchub", "get", "targets").errs).To(ContainSubstring("No SyncTargets found"))
	}, NodeTimeout(4*time.Minute))

	It("publishes an API that only one target has, renews credentials without a gap, and cordons", func(ctx SpecContext) {
		const ns, group = "imported", "imported.example.dev"
		name := "widgets." + group
		inventory := newInventory(ctx, ns)
		kubectl := userOf(ctx, inventory)
		admin := []string{"--target-kubeconfig", clusters["guilder"].Kubeconfig}
		register := append([]string{"synchub", "register", ns, "--hosting-kubeconfig", clusters["hosting"].Kubeconfig}, admin...)
		widgets := custom(group, "v1", "widgets", "Widget")
		define(ctx, target("guilder"), widgets)
		DeferCleanup(func(ctx SpecContext) { remove(ctx, target("hosting"), publishedResources, "", name) })

		refused := kubectl.runs(ctx, append(register, "--resources", name+",gizmos."+group)...)
		Expect(refused.err).To(HaveOccurred())
		Expect(refused.errs).To(ContainSubstring("the target does not serve gizmos." + group))
		Expect(framework.List(ctx, inventory.Config, syncTargets, "", "")).To(BeEmpty())
		Expect(kubectl.succeeds(ctx, append(register, "--resources", name, "--dry-run=client", "-o", "yaml")...).out).To(ContainSubstring("kind: PublishedResource"))
		Expect(framework.Exists(ctx, target("hosting"), publishedResources, "", name)).To(BeFalse())

		register = append(register, "--resources", name+",configmaps")
		done := kubectl.succeeds(ctx, register...)
		Expect(done.out).To(ContainSubstring("publishedresource.synchub.dev/" + name + " created\n"))
		Expect(done.out).To(ContainSubstring("publishedresource.synchub.dev/configmaps unchanged\n"))
		mailbox := mailboxOf(ctx, inventory, ns)
		apply(ctx, mailbox, documents(namespace(ns), widgets.object(ns, "first", "spec: {size: 1}"), configMap(ns, "settings", "x"),
			selecting(ns, widgets.GroupVersionResource, configMaps)))
		eventuallyExists(ctx, target("guilder"), widgets.GroupVersionResource, ns, "first")
		Expect(kubectl.succeeds(ctx, register...).out).To(ContainSubstring("publishedresource.synchub.dev/" + name + " unchanged\n"))

		By("rotating the token without losing the connection")
		expires := func() string {
			return value(ctx, inventory.Config, syncTargets, "", ns, "status", "credentials", "expiresAt")
		}
		former, token := expires(), value(ctx, inventory.Config, secrets, "default", ns+"-kubeconfig", "data")
		seen := watchTarget(ctx, inventory, ns)
		kubectl.succeeds(ctx, append([]string{"synchub", "rotate", ns, "--token-lifetime", "2h"}, admin...)...)
		Expect(value(ctx, inventory.Config, secrets, "default", ns+"-kubeconfig", "data")).NotTo(Equal(token))
		Eventually(expires).WithContext(ctx).ShouldNot(Or(BeEmpty(), Equal(former)))
		patch(ctx, mailbox, widgets.GroupVersionResource, ns, "first", `{"spec": {"size": 2}}`)
		Eventually(value).WithContext(ctx).WithArguments(target("guilder"), widgets.GroupVersionResource, ns, "first", "spec", "size").Should(Equal("2"))
		Expect(seen()).To(HaveEach(MatchRegexp("Ready=True .*HeartbeatHealthy=True|HeartbeatHealthy=True .*Ready=True")))

		By("rotating and revoking it at once")
		// Tokens of one second expire at the same time.
		rotate := append([]string{"synchub", "rotate", ns, "--wait"}, admin...)
		for _, more := range [][]string{nil, {"--revoke"}, {"--revoke"}} {
			Expect(kubectl.succeeds(ctx, append(slices.Clone(rotate), more...)...).out).To(HaveSuffix(" ready with the new token\n"))
		}

		By("creating no new copies while it is cordoned")
		Expect(kubectl.succeeds(ctx, "synchub", "cordon", ns).out).To(HaveSuffix(" cordoned\n"))
		eventuallyObserved(ctx, inventory, ns)
		apply(ctx, mailbox, widgets.object(ns, "second", "spec: {size: 1}"))
		Eventually(reasons).WithContext(ctx).WithArguments(mailbox, ns, "second").Should(ContainElement("TargetCordoned"))
		patch(ctx, mailbox, widgets.GroupVersionResource, ns, "first", `{"spec": {"size": 3}}`)
		eventuallyHas(ctx, target("guilder"), widgets.GroupVersionResource, ns, "first", "3", "spec", "size")
		Expect(framework.Exists(ctx, target("guilder"), widgets.GroupVersionResource, ns, "second")).To(BeFalse())
		Expect(kubectl.succeeds(ctx, "synchub", "uncordon", ns).out).To(HaveSuffix(" uncordoned\n"))
		eventuallyExists(ctx, target("guilder"), widgets.GroupVersionResource, ns, "second")
	}, NodeTimeout(4*time.Minute))

	It("behaves as documented", thorough, func(ctx SpecContext) {
		const ns = "registered-by-the-page"
		databases := custom("example.com", "v1", "databases", "Database")
		define(ctx, target("guilder"), databases)
		DeferCleanup(func(ctx SpecContext) {
			remove(ctx, target("hosting"), publishedResources, "", databases.GroupResource().String())
			remove(ctx, target("guilder"), definitions, "", databases.GroupResource().String())
		})
		inventory := newInventory(ctx, ns)
		kubectl := userOf(ctx, inventory)
		for file, cluster := range map[string]string{"florin": "guilder", "for-the-hub": "guilder", "hosting": "hosting"} {
			Expect(os.WriteFile(filepath.Join(kubectl.home, file+".kubeconfig"), kubeconfigOf(cluster), 0o600)).To(Succeed())
		}
		commands := pluginCommand.FindAllStringSubmatch(page("registration.md"), -1)
		Expect(len(commands)).To(BeNumerically(">", 10))
		for _, command := range commands {
			By(command[1])
			args := strings.Fields(command[1])[1:]
			if args[1] == "unregister" || slices.Contains(args, "--tenant-role") {
				// They ask, and here is no terminal.
				args = append(args, "--yes")
			}
			kubectl.succeeds(ctx, args...)
		}
		Expect(framework.List(ctx, inventory.Config, syncTargets, "", "")).To(BeEmpty(), "the last command removes the cluster")
		// Other specs register a florin too.
		own := value(ctx, inventory.Config, logicalClusters, "", "cluster", "metadata", "annotations", "kcp.io/cluster")
		Expect(own).NotTo(BeEmpty())
		Expect(madeFor(ctx, "guilder", own+"/florin")).To(BeEmpty())
	}, NodeTimeout(4*time.Minute))
})

// pluginCommand matches a command on a page, on a line of its own or within text.
var pluginCommand = regexp.MustCompile("(?m)(?:^    |`)(kubectl synchub [^`\n]+)")

// user is a user who runs kubectl in an inventory workspace.
type user struct {
	// home is the user's home directory.
	home        string
	environment []string
}

// output is the output of a command and its error.
type output struct {
	out, errs string
	err       error
}

func userOf(ctx context.Context, inventory *installation.Inventory) *user {
	GinkgoHelper()
	// The workspace becomes an inventory a moment after it has bound the export.
	Eventually(func() error {
		_, err := framework.List(ctx, inventory.Config, syncTargets, "", "")
		return err
	}).WithContext(ctx).Should(Succeed())
	kubeconfig, err := suite.KCP.WorkspaceKubeconfig(inventory.Path)
	Expect(err).NotTo(HaveOccurred())
	home := filepath.Join(suite.Options.Dir, "user-"+filepath.Base(kubeconfig))
	Expect(os.MkdirAll(home, 0o755)).To(Succeed())
	// kubectl finds its plugins in Bin.
	return &user{home, []string{"KUBECONFIG=" + kubeconfig, "HOME=" + home, "PATH=" + suite.Options.Bin + ":" + os.Getenv("PATH")}}
}

func (u *user) command(ctx context.Context, args []string) (*exec.Cmd, *bytes.Buffer) {
	out := &bytes.Buffer{}
	command := exec.CommandContext(ctx, filepath.Join(suite.Options.Bin, "kubectl"), args...)
	command.Dir = u.home
	command.Env = append(os.Environ(), u.environment...)
	command.Stdout = out
	return command, out
}

// runs runs kubectl with pipes.
func (u *user) runs(ctx context.Context, args ...string) output {
	var errs bytes.Buffer
	command, out := u.command(ctx, args)
	command.Stderr = &errs
	err := command.Run()
	return output{out.String(), errs.String(), err}
}

func (u *user) succeeds(ctx context.Context, args ...string) output {
	GinkgoHelper()
	got := u.runs(ctx, args...)
	Expect(got.err).NotTo(HaveOccurred(), "kubectl %q\n%s%s", args, got.out, got.errs)
	return got
}

// onTerminal runs kubectl with a terminal as its standard error.
func (u *user) onTerminal(ctx context.Context, args ...string) output {
	GinkgoHelper()
	return u.onTerminalSaying(ctx, "", args...)
}

// onTerminalSaying types text on that terminal.
func (u *user) onTerminalSaying(ctx context.Context, answer string, args ...string) output {
	GinkgoHelper()
	screen, terminal, err := openTerminal()
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = screen.Close() }()
	command, out := u.command(ctx, args)
	command.Stderr = terminal
	if answer != "" {
		command.Stdin = terminal
		_, err := screen.WriteString(answer)
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(command.Start()).To(Succeed())
	_ = terminal.Close()
	// Reading ends with an error when no process has the terminal open any more.
	shown, _ := io.ReadAll(screen)
	err = command.Wait()
	got := output{out.String(), strings.ReplaceAll(string(shown), "\r\n", "\n"), err}
	Expect(err).NotTo(HaveOccurred(), "kubectl %q\n%s%s", args, got.out, got.errs)
	return got
}

// madeFor returns the objects that the registration of a name has created on a target, by kind, with UIDs.
func madeFor(ctx context.Context, cluster, name string) map[string]string {
	GinkgoHelper()
	made := map[string]string{}
	for _, resource := range []schema.GroupVersionResource{serviceAccounts.GroupVersionResource, clusterRoles, clusterRoleBindings, roles, roleBindings} {
		objects, err := framework.List(ctx, target(cluster), resource, "", "app.kubernetes.io/managed-by=kubectl-synchub")
		Expect(err).NotTo(HaveOccurred())
		for _, object := range objects {
			if strings.HasSuffix("/"+object.GetAnnotations()["synchub.dev/sync-target"], "/"+name) {
				made[resource.Resource] = string(object.GetUID())
			}
		}
	}
	return made
}

// watchTarget records the states of a SyncTarget from now on. The returned function stops recording and returns their
// conditions, at least one.
func watchTarget(ctx context.Context, inventory *installation.Inventory, name string) func() []string {
	GinkgoHelper()
	client, err := dynamic.NewForConfig(inventory.Config)
	Expect(err).NotTo(HaveOccurred())
	events, err := client.Resource(syncTargets).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	Expect(err).NotTo(HaveOccurred())
	var states []string
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event := range events.ResultChan() {
			if object, ok := event.Object.(*unstructured.Unstructured); ok {
				states = append(states, conditionsOf(object))
			}
		}
	}()
	return func() []string {
		events.Stop()
		<-ended
		return states
	}
}

func conditionsOf(object *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	var text strings.Builder
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		fmt.Fprintf(&text, "%v=%v ", fields["type"], fields["status"])
	}
	return text.String()
}
