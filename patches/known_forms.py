"""The forms that releases give the functions which get hooked, by the hook's name.

`make matrix` writes the lines; see `forms.form` for what is hashed.
"""

from __future__ import annotations

_LINES = """\
attention.forward 6ccc85b077f7 709d00c9b453
config.create_engine_config 13c493e236bc 20ec4fb32481 47038963b14d 5e7a81656ad3 711c2886601b
config.create_engine_config 9c5a3118be4f ad7a27796926 b4748383561c b6ccce9e8c51 c76f3ef87e1f
config.create_engine_config c7e955d5d78c edcadc3d5a7a fe1c5ee2d9b9
config.num_speculative_tokens 31345a9f93c8 a25a5dc4d5f5
v1.draft_logits 497c4098cefa a23899f05f73
v1.expand_batch_to_tokens 32241a2d808c c1ed72c65a78
v1.init 0aeb3530c1a6 25207d713481 2b634bdadd52 365a1c6e732f 3f78df1530c9
v1.init 496497e93c72 5165bd468ef7 81761d1e8754 87f208ec701a 9c47c3834d1b
v1.init c770997db0e9 c77acd915ee5 e3318867f1e9 f99a3701b27a
v1.initialize_kv_cache 285bacd0f906 5b4294a7bdda a1fc2ed54565 a97c81f49745 c89d2d984d5b
v1.prepare_inputs 14c4c18a6ac0 3a49664036fd 3a606992dee3 4b7e082935d2 901885762a11
v1.prepare_inputs cc95676eb5bc e034cfc0bf11 f3cd2162bed6
v1.propose 09086bf3111d 7ba460b9ef2e 92e16869aa55 b0714a87f6f8 c0780fef30e0
v1.rejection_sample 80134e05b30f 91847f0f782d bb6cb9dfc5dc d4bae92cf8ff
v1.sample 600f5d9c40fc a85a1f65f7d2
v1.scheduler_init 76ec2c8cc40a 98920b10221f a6c99f84c042 ea3de934abdc
v2.add_requests 343148e4ae93 4842a554921e 53054b6fcf50 9d651d613323 ba642ecaebea
v2.add_requests f8ccf1902920
v2.init 5d03c1e221f1 5fb0ebc3a9da 6185c3ca83a1 70358eac428f 953103cd30ff
v2.init b45efd7ffab5 ccf0ce53a2d1 cd3da0cac8aa efbfc523a06a f521df2cd8f5
v2.initialize_kv_cache 001814764bc5 21f663347e64 8de561674538 ab9d141d2a55 acada106d185
v2.initialize_kv_cache ade333dc620d b22848e324a5 dfd187f75727 e4904ab86062 edfb177d2af6
v2.prepare_attn 2fea4ad726b6 b51b80ed5a15 ce602e8098d8
v2.rejection_sample 0ef99f533bb6 408bab6fd77d 6de752242969 846c74c73510 906b70e90223
v2.rejection_sample cb48eca28374 e016185936e8
v2.sample 9384a5e5b97d 9970ee432adb 9ffb93a6ae61 afcd63cd4883 b76d56cfb1f5
v2.sample bff6c4b406c7 fedd927e428a
v2.sample_draft 4f3ec378b726 6d8e1eda75e6 7cf6b7581b69 7effda923a1c adc058c30f52
v2.sample_draft be8fd5e30641 e16f3d822162
"""


def _read() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for line in _LINES.splitlines():
        hook, *forms = line.split()
        found[hook] = found.get(hook, frozenset()).union(forms)
    return found


FORMS = _read()
