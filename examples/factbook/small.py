"""Make an untrained model with 33 million parameters: python examples/factbook/small.py START OUT

It has the tokenizer of START.
"""

from __future__ import annotations

import sys

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

start, out = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(start)
torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=len(tokenizer),
    hidden_size=384,
    intermediate_size=1024,
    num_hidden_layers=8,
    num_attention_heads=6,
    max_position_embeddings=512,
    tie_word_embeddings=True,
    bos_token_id=tokenizer.bos_token_id,
    eos_token_id=tokenizer.eos_token_id,
    pad_token_id=tokenizer.pad_token_id,
)
LlamaForCausalLM(config).save_pretrained(out)
tokenizer.save_pretrained(out)
