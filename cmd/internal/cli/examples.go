package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples are command lines for each help, by the command's path without the program's name. A test holds that every
// command has some, and that each of them is understood.
var examples = map[string]string{
	"": `fencepost status
fencepost backup create shop --wait
fencepost restore shop --as shop_copy`,
	"approval approve": `fencepost approval approve 4f1c09aa27d3 --server https://n1:7948 --token-file ~/.fencepost-token`,
	"approval ls":      "fencepost approval ls\nfencepost approval ls --watch",
	"approval refuse":  `fencepost approval refuse 4f1c09aa27d3 --why "the release is tomorrow"`,
	"approval show":    `fencepost approval show 4f1c09aa27d3`,
	"backup accept":    `fencepost backup accept 01JQ8Z`,
	"backup create":    "fencepost backup create shop --wait\nfencepost backup create shop --storage disk --storage cloud",
	"backup delete":    "fencepost backup delete 01JQ8Z\nfencepost backup delete 01JQ8Z --now",
	"backup list":      "fencepost backup list\nfencepost backup list shop -o json | jq -r '.[0].id'",
	"backup note":      `fencepost backup note 01JQ8Z "before the move"`,
	"backup pin":       `fencepost backup pin 01JQ8Z`,
	"backup replicate": `fencepost backup replicate 01JQ8Z --storage cloud`,
	"backup show":      "fencepost backup show 01JQ8Z\nfencepost backup show 01JQ8Z --watch",
	"backup undelete":  `fencepost backup undelete 01JQ8Z`,
	"backup unpin":     `fencepost backup unpin 01JQ8Z`,
	"cancel":           `fencepost cancel 01JQ90 --wait`,
	"catalog rebuild":  "fencepost catalog rebuild\nfencepost catalog rebuild --storage disk",
	"certs init":       `fencepost certs init --dir /root/fencepost-ca --group shop`,
	"certs issue":      `fencepost certs issue --node n4 --dir /root/fencepost-ca --group shop`,
	"certs renew":      `fencepost certs renew --node n1 --dir /root/fencepost-ca`,
	"certs show":       `fencepost certs show /etc/fencepost/n1.pem`,
	"claim free":       `fencepost claim free backup 01JQ90 --token 4711`,
	"claim ls":         "fencepost claim ls\nfencepost claim ls --watch",
	"claim quarantine": `fencepost claim quarantine backup 01JQ90 --token 4711`,
	"claim show":       `fencepost claim show backup 01JQ90`,
	"completion":       "fencepost completion bash > /etc/bash_completion.d/fencepost\nfencepost completion zsh > /usr/share/zsh/vendor-completions/_fencepost\nfencepost completion fish > ~/.config/fish/completions/fencepost.fish",
	"component ls":     "fencepost component ls\nfencepost component ls --watch",
	"component pause":  `fencepost component pause backup`,
	"component resume": `fencepost component resume backup`,
	"component run":    `fencepost component run backup`,
	"doctor":           "sudo -u fencepost fencepost doctor\nfencepost doctor --config n1.yaml --read-only\nfencepost doctor -o json | jq '.[] | select(.state != \"ok\")'",
	"env drain":        `fencepost env drain --config /etc/fencepost/node.yaml`,
	"env evidence":     `fencepost env evidence --home /var/lib/fencepost`,
	"env fail":         `fencepost env fail --cause "the disk was swapped" --home /var/lib/fencepost`,
	"env seal":         `fencepost env seal --home /var/lib/fencepost`,
	"env slots":        `fencepost env slots --home /var/lib/fencepost`,
	"env status":       `fencepost env status --home /var/lib/fencepost`,
	"env sweep":        `fencepost env sweep --home /var/lib/fencepost`,
	"env verify":       `fencepost env verify --home /var/lib/fencepost`,
	"event append":     `fencepost event append invoice-7 received --details "by mail"`,
	"event ls":         `fencepost event ls invoice-7`,
	"event restart":    `fencepost event restart invoice-7 export`,
	"event rm":         `fencepost event rm invoice-7 received`,
	"fence lower":      `fencepost fence lower backup n2 --token 4711`,
	"fence raise":      `fencepost fence raise backup n2`,
	"fences":           "fencepost fences\nfencepost fences --watch",
	"init":             "fencepost init --nodes n1,n2,n3 --dir /tmp/group",
	"item put":         `fencepost item put invoice invoice-7 --data '{"customer": 12}'`,
	"item query":       "fencepost item query export\nfencepost item query export --explain invoice-7",
	"keyring add":      `fencepost keyring add --generate`,
	"keyring list":     `fencepost keyring list`,
	"keyring remove":   `fencepost keyring remove fedcba9876543210`,
	"keyring use":      `fencepost keyring use fedcba9876543210`,
	"kit check":        `fencepost kit check /media/stick/shop.kit`,
	"kit make":         `fencepost kit make /media/stick/shop.kit --config /etc/fencepost/node.yaml`,
	"kit open":         `fencepost kit open /media/stick/shop.kit --dir /root/kit`,
	"man":              `fencepost man /usr/local/share/man/man1`,
	"members":          "fencepost members\nfencepost members -o json | jq -r '.[] | select(.suspected) | .node'",
	"upgrade":          "fencepost upgrade\nfencepost upgrade --watch",
	"upgrade finalize": "fencepost upgrade finalize\nfencepost upgrade finalize --without n3",
	"group rebase":     "fencepost group rebase --why \"the homes were restored from last night\"\nfencepost group rebase --above 1799999999000000",
	"node drain":       `fencepost node drain n3 --wait --deadline 4h`,
	"node may-restart": `fencepost node may-restart n3`,
	"node undrain":     `fencepost node undrain n3`,
	"node forget":      `fencepost node forget n3`,
	"node replace":     `fencepost node replace n3`,
	"notify test":      "fencepost notify test\nfencepost notify test ops",
	"prune":            "fencepost prune shop\nfencepost prune shop --confirm",
	"recoveries":       "fencepost recoveries\nfencepost recoveries --watch",
	"recoveries drop":  `fencepost recoveries drop backup 6f1c09aa --why "the machine is gone and its work was done by hand"`,
	"recoveries retry": `fencepost recoveries retry backup 6f1c09aa`,
	"recoveries show":  `fencepost recoveries show backup 6f1c09aa`,
	"reload":           `fencepost reload`,
	"restore":          "fencepost restore shop --as shop_copy --wait\nfencepost restore 01JQ8Z --replace --dry-run\nfencepost restore shop --in-place --yes shop",
	"apply":            "fencepost apply -f settings --plan\nfencepost apply -f settings --prune",
	"database forget":  `fencepost database forget pg1.shop`,
	"database ls":      "fencepost database ls\nfencepost database ls --watch",
	"export":           "fencepost export\nfencepost export -f settings",
	"server look":      `fencepost server look pg1`,
	"server ls":        "fencepost server ls\nfencepost server ls -o json | jq -r '.[].databases[].name'",
	"schedule disable": `fencepost schedule disable nightly`,
	"schedule enable":  `fencepost schedule enable nightly`,
	"token ls":         "fencepost token ls",
	"user ls":          "fencepost user ls\nfencepost user ls -o json | jq '.[] | select(.disabled)'",
	"schedule ls":      "fencepost schedule ls\nfencepost schedule ls -o json | jq '.[].next[0].start'",
	"schedule run":     `fencepost schedule run nightly --wait`,
	"status":           "fencepost status --watch\nfencepost status --wait\nfencepost status --check || mail -s backups ops@example.org < /dev/null\nfencepost status -o json | jq '.databases[] | select(.state != \"good\")'",
	"storage add":      `fencepost storage add cloud --config /etc/fencepost/node.yaml`,
	"storage adopt":    `fencepost storage adopt disk --config /etc/fencepost/node.yaml`,
	"storage auth":     `fencepost storage auth box --config /etc/fencepost/node.yaml`,
	"storage check":    "fencepost storage check disk\nfencepost storage check disk --fix",
	"storage globals":  `fencepost storage globals disk 01JQ8Z --out roles.sql --config /etc/fencepost/node.yaml`,
	"storage list":     `fencepost storage list disk --config /etc/fencepost/node.yaml`,
	"storage restore":  `fencepost storage restore disk 01JQ8Z --config /etc/fencepost/node.yaml --database shop`,
	"storage set":      `fencepost storage set cloud --config /etc/fencepost/node.yaml --secret-file new.secret`,
	"storage test":     "fencepost storage test cloud\nfencepost storage test cloud --config /etc/fencepost/node.yaml",
	"database test":    `fencepost database test pg1.shop`,
	"backup manifest":  "fencepost backup manifest 01JQ8Z\nfencepost backup manifest 01JQ8Z --storage cloud -o json | jq .manifest.objects",
	"tasks":            "fencepost tasks --active --watch\nfencepost tasks 01JQ90",
	"undo":             `fencepost undo 01JQ90`,
	"usage":            "fencepost usage\nfencepost usage -o json | jq '.storages[] | select(.full) | .storage'",
	"verify":           "fencepost verify 01JQ8Z\nfencepost verify 01JQ8Z --scratch lab",
	"version":          `fencepost version`,
	"view":             "fencepost view\nfencepost view --watch",
}

// finish gives every command what all have: its examples, and the exit codes below its help.
func finish(cmd *cobra.Command) {
	name := strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()), " ")
	if text := examples[name]; text != "" && cmd.Example == "" {
		cmd.Example = "  " + strings.ReplaceAll(text, "\n", "\n  ")
	}
	for _, below := range cmd.Commands() {
		finish(below)
	}
}
