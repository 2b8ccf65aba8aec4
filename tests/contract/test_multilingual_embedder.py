"""The multilingual embedder finds in Portuguese and Japanese what the default one does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from offline_judge.protocols import Embedder
from offline_judge.retrieval.embedding.e5 import E5Embedder
from offline_judge.retrieval.embedding.onnx import OnnxEmbedder
from offline_judge.weights.cards import find_card

pytestmark = pytest.mark.engine

# Questions beside passages that answer them and share next to no words with them.
PORTUGUESE = {
    "Qual remédio é usado para baixar a febre?": "O paracetamol reduz a temperatura do corpo.",
    "Onde fica a sede do governo brasileiro?": "Brasília é a capital federal desde 1960.",
    "Quem pintou a Mona Lisa?": "Leonardo da Vinci trabalhou anos no retrato da Gioconda.",
    "Por que o céu é azul?": "As moléculas do ar espalham mais a luz de onda curta.",
    "Como se chama o bebê da vaca?": "O bezerro é o filhote dos bovinos e mama meses.",
    "Quanto tempo a Terra leva para dar a volta no Sol?": "Um ano tem cerca de 365 dias.",
    "Qual é o ingrediente principal do pão?": "A farinha de trigo é misturada com fermento.",
}
JAPANESE = {
    "熱を下げる薬は何ですか": "アセトアミノフェンは体温を下げ、軽い痛みを和らげる。",
    "日本の政府はどこにありますか": "東京は首都であり、国会議事堂がある。",
    "モナリザを描いたのは誰ですか": "レオナルド・ダ・ヴィンチは長年この肖像画に取り組んだ。",
    "空はなぜ青いのですか": "大気の分子は波長の短い光をより多く散乱する。",
    "牛の赤ちゃんを何と呼びますか": "子牛は数か月のあいだ母乳を飲む。",
    "地球が太陽の周りを一周するのにどのくらいかかりますか": "一年は約三百六十五日である。",
    "パンの主な材料は何ですか": "小麦粉に水と酵母を混ぜてこねる。",
}


def _found(embedder: Embedder, questions: list[str], passages: list[str]) -> int:
    """For how many questions their own passage is the nearest."""
    asked = embedder.embed(questions, kind="query")
    given = embedder.embed(passages, kind="passage")
    return int(((asked @ given.T).argmax(axis=1) == np.arange(len(questions))).sum())


def test_it_finds_in_portuguese_and_japanese_what_the_default_does_not(
    embedder_weights: Path, multilingual_weights: Path
) -> None:
    english = OnnxEmbedder(find_card("all-minilm-l6-v2-int8"), embedder_weights, threads=1)
    many = E5Embedder(find_card("multilingual-e5-small-q4"), multilingual_weights, threads=1)
    for pairs in (PORTUGUESE, JAPANESE):
        questions, passages = list(pairs), list(pairs.values())
        assert _found(many, questions, passages) == len(pairs)
        assert _found(english, questions, passages) < len(pairs) - 1
    # From one language to the other as well: the same seven facts in the same order.
    questions, passages = list(PORTUGUESE), list(JAPANESE.values())
    assert _found(many, questions, passages) == len(questions)
    assert _found(english, questions, passages) < 4
    many.close()
    english.close()
